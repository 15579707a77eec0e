"""Memory that is kept: large blocks come back from where they went."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource
from ncttt.allocation import keep_memory
kept = {keep} and keep_memory()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def use():
    block = libc.malloc(16 * 2**20)
    ctypes.memset(block, 1, 16 * 2**20)
    libc.free(block)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc alone has these settings")
def test_blocks_are_cleared_once_and_not_every_time():
    def faults(keep: bool) -> int:
        found = subprocess.run([sys.executable, "-c", PROGRAM.format(keep=keep)], capture_output=True, text=True)
        return int(found.stdout)

    assert faults(keep=True) < 200
    assert faults(keep=False) > faults(keep=True) + 50
