"""The order and the spelling of names in reports; written out here, because their homes import torch."""

from typing import Final

CLEAN: Final = "clean"
CORRUPTIONS: Final = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
)
EXTRA: Final = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
METHODS: Final = ("source", "lame", "ptbn", "tent", "ttt", "ttt_plus", "clust3", "ttt_flow", "nc_ttt")
_LINES: Final = (CLEAN, *CORRUPTIONS, *EXTRA)


def corruption_order(name: str) -> tuple[int, str]:
    """A key to sort corruptions by: clean, the fifteen of the benchmark, the extra four, then others by name.

    >>> sorted(["saturate", "fog", "shot_noise", "clean"], key=corruption_order)
    ['clean', 'shot_noise', 'fog', 'saturate']
    """
    return (_LINES.index(name), "") if name in _LINES else (len(_LINES), name)


def method_order(name: str) -> int:
    """A key to sort methods by: the paper's order, then what the paper does not know."""
    return METHODS.index(name) if name in METHODS else len(METHODS)


def spelled(corruption: str) -> str:
    """A corruption as a table shows it.

    >>> spelled("jpeg_compression"), spelled("shot_noise"), spelled("fog+snow")
    ('JPEG compression', 'Shot noise', '2 corruptions in one stream')
    """
    if "+" in corruption:
        return f"{corruption.count('+') + 1} corruptions in one stream"
    words = corruption.replace("_", " ")
    return "JPEG" + words[4:] if words.startswith("jpeg") else words[:1].upper() + words[1:]
