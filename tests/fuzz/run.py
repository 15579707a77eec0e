"""Fuzz a door for a while: `python tests/fuzz/run.py rows 600`; needs atheris, which `make fuzz` installs.

Inputs that reach something new are kept in `runs/fuzz/<door>/`, so that the next run begins there. What crashes, hangs
or raises anything but an `InputError` is written to `runs/fuzz/<door>-found-...`; mended, it goes to
`tests/faults/corpus/<door>/`, where every test run replays it.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

sys.path.insert(0, str(Path(__file__).parent))
with atheris.instrument_imports(include=["ncttt", "PIL", "doors"]), TemporaryDirectory() as folder:
    from doors import DOORS, prepare

    prepare(Path(folder))  # packages load their modules on first use


def main(door: str, seconds: int) -> None:
    """Fuzz one door; ends with an exit code that is not 0 when it has found something."""
    home = Path("runs/fuzz")
    corpus = home / door
    corpus.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        for number, content in enumerate(prepare(Path(folder))[door]):
            (corpus / f"whole-{number}").write_bytes(content)
        limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=4096", "-max_len=65536"]
        atheris.Setup(
            [sys.argv[0], *limits, f"-artifact_prefix={home / door}-found-", "-print_final_stats=1", str(corpus)],
            lambda content: DOORS[door](content, Path(folder)),
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
