from .epoch import Epoch
from .job import Job, read_job
from .launch import run_job
from .loop import train
from .recipe import Recipe
from .watching import Observer

__all__ = [
    "Epoch",
    "Job",
    "Observer",
    "Recipe",
    "read_job",
    "run_job",
    "train",
]
