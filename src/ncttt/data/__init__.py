"""Data sets as uint8 images, labels and class names: `load` one by name, draw `batches` from it."""

from ncttt.data.augment import pad_crop_flip, pad_crop_flip_cutout, resize_crop_flip
from ncttt.data.batching import Batches, batches
from ncttt.data.fetching import get
from ncttt.data.folders import folder
from ncttt.data.imageset import Images, ImageSet
from ncttt.data.loading import corrupted, load
from ncttt.data.roots import data_root
from ncttt.data.sources import SOURCES

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
