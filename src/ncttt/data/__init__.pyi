from .augment import pad_crop_flip, pad_crop_flip_cutout, resize_crop_flip
from .batching import Batches, batches
from .corrupting import corrupt_set, draw_sheet
from .fetching import check, get
from .files.folders import folder
from .files.image_files import LazyImages
from .files.imageset import Images, ImageSet
from .loading import corrupted, load
from .sets.base import DataSet, Download, data_root
from .sets.registry import DATA_SETS, data_set, list_sets
from .stream import Domain, Stream, StreamBatch
from .torch_data import LoadedBatches, as_image_set

__all__ = [
    "DATA_SETS",
    "Batches",
    "DataSet",
    "Domain",
    "Download",
    "ImageSet",
    "Images",
    "LazyImages",
    "LoadedBatches",
    "Stream",
    "StreamBatch",
    "as_image_set",
    "batches",
    "check",
    "corrupt_set",
    "corrupted",
    "data_root",
    "data_set",
    "draw_sheet",
    "folder",
    "get",
    "list_sets",
    "load",
    "pad_crop_flip",
    "pad_crop_flip_cutout",
    "resize_crop_flip",
]
