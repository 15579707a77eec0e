"""The methods, one small file each, and the table of them."""

from ncttt.methods.base import Method, Objective
from ncttt.methods.clust3 import ClusT3
from ncttt.methods.lame import Lame
from ncttt.methods.nc_ttt import NCTTT
from ncttt.methods.ptbn import PTBN
from ncttt.methods.source import Source
from ncttt.methods.tent import Tent
from ncttt.methods.ttt import TTT
from ncttt.methods.ttt_flow import TTTFlow
from ncttt.methods.ttt_plus import TTTPlus

METHODS: dict[str, type[Method]] = {
    "source": Source,
    "ptbn": PTBN,
    "tent": Tent,
    "lame": Lame,
    "ttt": TTT,
    "ttt_plus": TTTPlus,
    "clust3": ClusT3,
    "ttt_flow": TTTFlow,
    "nc_ttt": NCTTT,
}

__all__ = [
    "METHODS",
    "NCTTT",
    "PTBN",
    "TTT",
    "ClusT3",
    "Lame",
    "Method",
    "Objective",
    "Source",
    "TTTFlow",
    "TTTPlus",
    "Tent",
]
