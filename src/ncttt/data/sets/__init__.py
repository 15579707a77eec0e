"""The data sets: one class in one file each, found by `DATA_SETS`; a new set is a new file here, or anywhere else."""
