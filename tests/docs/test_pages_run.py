"""What the pages show is run, page by page in a folder of its own; `make docs-check`. Some minutes."""

import json
import os
import subprocess
import sys
import warnings

import pytest
from page_contents import PAGES, ROOT, Step, steps

# What is not run: part of a page's name, part of the command or block, and why not.
LEFT_OUT = (
    ("", "torchrun", "several processes are started by the tests of training"),
    ("", "ncttt paper", "run by the tests of the paper"),
    ("", "ncttt data get", "fetches; tested by `make test-network`"),
    ("", "cifar10c", "takes hours"),
    ("", "--config study/", "takes hours"),
    ("", "ncttt data check cifar10", "needs CIFAR-10"),
    ("", "ncttt data corrupt cifar10", "needs CIFAR-10"),
    ("README", "ncttt demo", "run by `make demo`"),
    ("README", "ncttt adapt", "a folder of the reader's"),
    ("README", "ncttt report", "needs the rows of a benchmark"),
    ("README", "ncttt figures", "run by the page of figures"),
    ("README", "ncttt bench", "run by the page of benchmarks"),
    ("README", "ncttt tune", "run by the page of benchmarks"),
    ("README", "ncttt rows", "run by the page of benchmarks"),
    ("README", "ncttt train", "run by the page of training"),
    ("README", "ncttt push", "needs a hub; tests/zoo/test_sharing.py has a stand-in"),
    ("docs/data", 'load("cifar10"', "needs CIFAR-10"),
    ("docs/data", "photos/", "a folder of the reader's; the guide to own data makes one"),
    ("docs/corruptions", "generate(images", "a sketch: the images are the reader's"),
    ("docs/tables", "cifar10-small-ncttt", "takes hours"),
    ("docs/adapt", "photos", "a folder of the reader's"),
    ("own-method", "confident:Confident", "a file of the reader's; tests/test_additions.py does the like"),
    ("docs/adapt", "model.calibrate", "a checkpoint that the README makes"),
    ("docs/adapt", "monday", "folders of the reader's"),
    ("docs/report", "bench.sqlite", "needs the rows of a benchmark"),
    ("docs/gallery", "ncttt figures", "run by the page of figures; the stream that drifts needs CIFAR-10"),
    ("docs/figures", "layer-sigma", "trains sixteen models"),
    ("docs/howto/serve", "ncttt serve", "does not end by itself; tests/serve has it as a process"),
    ("docs/howto/serve", "ncttt adapt", "needs a service; tests/serve/test_process.py sends a folder"),
    ("docs/howto/cluster", "--executor ray", "Ray is tested by the tests of the executors"),
)


def reason(step: Step) -> str | None:
    """Why a step is left out."""
    return next((why for page, part, why in LEFT_OUT if page in step.page and part in step.text), None)


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_a_page_runs(page, tmp_path, monkeypatch):
    kept = [step for step in steps(page) if reason(step) is None]
    if not kept:
        pytest.skip("nothing on this page is run")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "a_page"}
    for step in kept:
        if step.words is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about branches that were hardly trained
                exec(compile(step.text, step.name, "exec"), names)
        else:
            run(step)


def run(step: Step) -> None:
    """Run a command as a script would: it succeeds, and writes no colours and no bars."""
    assert step.words is not None
    command = [sys.executable, "-m", "ncttt", *step.words]
    found = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert found.returncode == 0, f"{step.name}: {step.text}\n{found.stderr}"
    assert "\x1b" not in found.stdout + found.stderr, f"{step.name}: {step.text}"


@pytest.mark.docs
def test_nothing_is_left_out_that_is_not_there():
    for page, part, why in LEFT_OUT:
        if page != "README":
            found = [step for path in PAGES for step in steps(path) if page in step.page and part in step.text]
            assert found, f"{part!r} is on no page any more: {why}"


@pytest.mark.docs
def test_the_tutorials_model_is_as_accurate_as_the_tutorial_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(next(step for step in steps(ROOT / "docs" / "tutorial.md") if step.words and step.words[0] == "train"))
    assert json.loads((tmp_path / "runs" / "first" / "results.json").read_text())["test_accuracy"] >= 0.95
