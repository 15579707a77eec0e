"""Orders of streams: every image once, in the bursts that they promise."""

import numpy as np
import pytest

from ncttt import InputError
from ncttt.benchmark.streams import Order, batches_of, order_of, parse_order


def test_orders_show_every_image_once_and_classes_in_bursts():
    labels = np.random.default_rng(0).integers(0, 10, 2000)

    def changes(order: str) -> float:
        places = order_of(labels, order, seed=3)
        assert sorted(places) == list(range(2000))
        return np.mean([len(np.unique(labels[places[start : start + 50]])) for start in range(0, 2000, 50)])

    by_class, bursts, mild, fair = (changes(o) for o in ("by_class", "dirichlet(0.05)", "dirichlet(10)", "random"))
    assert by_class < 2 < bursts < mild < fair + 0.2
    assert fair > 9
    assert (order_of(labels, "random", 1) != order_of(labels, "random", 2)).any()


@pytest.mark.parametrize("order", ["random", "by_class", "dirichlet(0.1)"])
def test_a_mixed_stream_shows_each_image_in_one_scenario_and_all_equally_often(order):
    labels = np.random.default_rng(0).integers(0, 10, 300)
    batches = batches_of(labels, 3, "mixed" if order == "random" else f"mixed({order})", seed=1, size=50)
    scenarios, places = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    assert places.tolist() == order_of(labels, order, 1).tolist()
    assert np.bincount(scenarios).tolist() == [100, 100, 100]
    assert all(len(np.unique(scenarios)) == 3 for scenarios, _ in batches)


def test_other_streams_go_through_the_scenarios_one_after_another():
    labels = np.random.default_rng(0).integers(0, 10, 70)
    batches = batches_of(labels, 2, "random", seed=1, size=50)
    assert [(set(scenarios.tolist()), len(places)) for scenarios, places in batches] == [
        ({0}, 50), ({0}, 20), ({1}, 50), ({1}, 20),
    ]  # fmt: skip


def test_orders_by_their_names():
    assert parse_order("random") == Order("random")
    assert parse_order("dirichlet(.5)") == Order("dirichlet", (0.5,))
    assert parse_order("mixed") == Order("random", mixed=True)
    assert parse_order("mixed(by_class)") == Order("by_class", mixed=True)
    for name in ("by_clas", "dirichlet", "dirichlet(0)", "dirichlet(-1)", "mixed()", "mixed(mixed)", "by_class(1)"):
        with pytest.raises(InputError, match="no order"):
            parse_order(name)
