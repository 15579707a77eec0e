from .examples import Example, examples_of
from .luck import Judged, judge
from .writing import write_page

__all__ = [
    "Example",
    "Judged",
    "examples_of",
    "judge",
    "write_page",
]
