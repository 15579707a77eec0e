from .augment import pad_crop_flip, pad_crop_flip_cutout, resize_crop_flip
from .batching import Batches, batches
from .fetching import get
from .folders import folder
from .imageset import Images, ImageSet
from .loading import corrupted, load
from .roots import data_root
from .sources import SOURCES

__all__ = [
    "SOURCES",
    "Batches",
    "ImageSet",
    "Images",
    "batches",
    "corrupted",
    "data_root",
    "folder",
    "get",
    "load",
    "pad_crop_flip",
    "pad_crop_flip_cutout",
    "resize_crop_flip",
]
