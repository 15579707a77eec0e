from .actmad import ActMAD
from .base import Method, Objective, Prediction
from .clust3 import ClusT3
from .cotta import CoTTA
from .deyo import DeYO
from .eata import EATA, ETA
from .lame import Lame
from .memo import MEMO
from .nc_ttt import NCTTT
from .note import NOTE
from .ptbn import PTBN
from .rdumb import RDumb
from .registry import METHODS, needs_of, place_of, title_of
from .roid import ROID
from .rotta import RoTTA
from .sar import SAR
from .settings import method_for, method_from, settings_of
from .source import Source
from .t3a import T3A
from .tent import Tent
from .ttt import TTT
from .ttt_flow import TTTFlow
from .ttt_mae import TTTMAE
from .ttt_plus import TTTPlus

__all__ = [
    "EATA",
    "ETA",
    "MEMO",
    "METHODS",
    "NCTTT",
    "NOTE",
    "PTBN",
    "ROID",
    "SAR",
    "T3A",
    "TTT",
    "TTTMAE",
    "ActMAD",
    "ClusT3",
    "CoTTA",
    "DeYO",
    "Lame",
    "Method",
    "Objective",
    "Prediction",
    "RDumb",
    "RoTTA",
    "Source",
    "TTTFlow",
    "TTTPlus",
    "Tent",
    "method_for",
    "method_from",
    "needs_of",
    "place_of",
    "settings_of",
    "title_of",
]
