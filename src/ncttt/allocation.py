"""Keeping memory: a training asks for the same large blocks in every step, and need not give them back in between."""

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LARGEST = 32 * 2**20  # the highest threshold that glibc takes


def keep_memory() -> bool:
    """Let this process keep freed blocks of up to 32 MiB instead of giving them back to the system; says if it could.

    Without it, glibc maps such blocks anew each time, and the system clears them page by page, which a small network
    feels. The memory stays with the process until it ends, so this is for commands, not for libraries. Elsewhere than
    on glibc it does nothing.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGEST) and mallopt(_TRIM_THRESHOLD, 2**31 - 1))
