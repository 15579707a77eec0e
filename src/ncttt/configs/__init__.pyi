from .named import HOME, find, names

__all__ = ["HOME", "find", "names"]
