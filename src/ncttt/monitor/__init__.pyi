from .monitor import Monitor, Reading
from .window import Window

__all__ = ["Monitor", "Reading", "Window"]
