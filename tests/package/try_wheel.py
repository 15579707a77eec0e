"""Installs the wheel of a folder into an empty environment and uses it there, far from the repository.

    python tests/package/try_wheel.py dist

The environment borrows the packages that this interpreter has, but for ncttt: that comes from the wheel alone.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

LARGEST = 40e6  # bytes of a wheel
KEPT_OUT = re.compile(r"\.sqlite$|\.py[cod]$|(^|/)(runs|site)/|(^|/)results/(?!README\.md)")
RELATIVE_LINK = re.compile(r"\]\((?!https?:|mailto:|#)[^)]*")
USE = """
import pathlib, sys
import ncttt

assert pathlib.Path(ncttt.__file__).is_relative_to(sys.prefix), ncttt.__file__
model = ncttt.load("digits-small-ncttt")
images, labels = next(iter(ncttt.data.batches(ncttt.data.load("digits", "val"), 64)))
predicted = ncttt.Adapter(model)(images).argmax(1)
accuracy = (predicted == labels).float().mean().item()
assert accuracy > 0.9, accuracy
print(f"adapted to a batch: accuracy {accuracy:.1%}")
"""
COMMANDS = (
    ("info",),
    ("train", "--config", "digits", "--recipe.epochs", "1", "--out", "first"),
    ("bench", "--config", "digits", "--print-config"),
    ("tune", "--config", "digits", "--print-config"),
)


def check_files(dist: Path) -> Path:
    """Check what the wheel and the source distribution hold, and return the wheel."""
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    inside = zipfile.ZipFile(wheel)
    metadata = next(name for name in inside.namelist() if name.endswith(".dist-info/METADATA"))
    links = RELATIVE_LINK.findall(inside.read(metadata).decode())
    assert not links, f"links of the long description that lead nowhere: {links}"
    with tarfile.open(source) as files:
        names = [*inside.namelist(), *files.getnames()]
    assert not [name for name in names if KEPT_OUT.search(name)], "files that do not belong there"
    assert wheel.stat().st_size < LARGEST, f"{wheel} has {wheel.stat().st_size} bytes"
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB; {source.name}: {source.stat().st_size / 1e6:.1f} MB")
    return wheel


def install(wheel: Path, folder: Path) -> Path:
    """An environment with the wheel and the packages of this one; returns its interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin/python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel], check=True)
    found = subprocess.check_output([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
    # A path in a .pth file is searched last, and the .pth files in it, such as that of an editable ncttt, are not read.
    Path(found.strip(), "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def use(python: Path, folder: Path) -> None:
    """Load, adapt and run commands, as a user does after `pip install ncttt`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    subprocess.run([python, "-c", USE], cwd=folder, env=environment, check=True)
    for words in COMMANDS:
        print(f"ncttt {' '.join(words)}", flush=True)
        said = subprocess.run([python.parent / "ncttt", *words], cwd=folder, env=environment, stdout=subprocess.PIPE)
        assert said.returncode == 0, said
    assert (folder / "first/last/model.safetensors").is_file()


def main() -> None:
    wheel = check_files(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        use(install(wheel.resolve(), Path(folder, "environment")), Path(folder))
    print("the wheel works")


if __name__ == "__main__":
    main()
