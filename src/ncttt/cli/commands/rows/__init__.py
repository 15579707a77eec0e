"""Show, export and seed the rows of a benchmark."""
