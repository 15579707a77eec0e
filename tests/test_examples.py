"""The examples run, and what they report is true."""

import importlib.util
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def load_example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_dimensions(tmp_path, capsys):
    example = load_example("two_dimensions")
    found = example.main(["--figure", str(tmp_path / "figure.png")])
    assert found["error"] < 0.05
    # The outlier is drawn in, crosses the border q = 1/2 and goes on; the stop at the source's level holds it earlier.
    assert found["start"] < 0.05
    assert 0.5 < found["level"] <= found["stopped"] < found["level"] + 0.05
    assert found["free"] > found["stopped"]
    assert "refuted" in capsys.readouterr().out
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_the_error_would_be_large_for_a_discriminator_that_learned_nothing():
    example = load_example("two_dimensions")
    untrained = example.train_discriminator(example.make_points(), steps=1)
    assert example.posterior_error(untrained, example.make_points()) > 0.2


def test_own_method(capsys):
    trace = load_example("own_method").main()
    assert trace.steps == 3
    assert trace.losses[-1] < trace.losses[0]
