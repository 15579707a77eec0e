"""What everything stands on: errors, files, registries, provenance, process pools, seeds. Imports nothing of ours."""
