"""Rows and the paper's numbers as tables: Markdown, LaTeX, CSV. Knows rows alone, and needs no torch."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
