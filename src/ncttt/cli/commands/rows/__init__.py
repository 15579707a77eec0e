"""Show, export and seed the rows of a benchmark."""

EXAMPLE = "ncttt rows show runs/bench.sqlite"
GROUP = "measure"
