from .adapter import Adapter
from .batch import Trace
from .folders import Adapted, FolderStream
from .predictions import PREDICTIONS, TRACE, adapt_folders
from .protocols import PROTOCOLS, Protocol
from .small_batches import SmallBatchWarning
from .summary import Tally
from .watch import CollapseWarning

__all__ = [
    "PREDICTIONS",
    "PROTOCOLS",
    "TRACE",
    "Adapted",
    "Adapter",
    "CollapseWarning",
    "FolderStream",
    "Protocol",
    "SmallBatchWarning",
    "Tally",
    "Trace",
    "adapt_folders",
]
