"""The methods, one small file each, and the table of them."""

from ncttt.methods.base import Method, Objective
from ncttt.methods.nc_ttt import NCTTT
from ncttt.methods.ptbn import PTBN
from ncttt.methods.source import Source

METHODS: dict[str, type[Method]] = {"source": Source, "ptbn": PTBN, "nc_ttt": NCTTT}

__all__ = ["METHODS", "NCTTT", "PTBN", "Method", "Objective", "Source"]
