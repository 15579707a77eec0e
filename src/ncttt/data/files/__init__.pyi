from .folders import folder
from .image_files import LazyImages
from .imageset import Images, ImageSet

__all__ = ["ImageSet", "Images", "LazyImages", "folder"]
