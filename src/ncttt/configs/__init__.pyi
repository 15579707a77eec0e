from .named import HOME, checked, find, names

__all__ = ["HOME", "checked", "find", "names"]
