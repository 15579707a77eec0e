"""Attribution: one checkpoint, five ways, and shares that add up."""

import pytest
import small_grid

from ncttt import InputError
from ncttt.benchmark import attribute, plans, run_cells
from ncttt.benchmark.attribution import unique_cells
from ncttt.benchmark.grid import Entry


def test_statistics_and_gradient_are_the_total(checkpoint, store):
    entries = [
        Entry(method="source", checkpoint=checkpoint),
        Entry(method="tent", checkpoint=checkpoint, settings={"lr": 0.05}),
        Entry(method="nc_ttt", checkpoint=checkpoint, label="NC-TTT", settings={"lr": 0.05, "steps": 3}),
    ]
    chosen = plans(small_grid.grid(checkpoint, methods=entries, protocols=["episodic", "online"], seeds=[0, 1]))
    assert [(plan.subject.method, plan.subject.protocol) for plan in chosen] == [
        ("tent", "episodic"), ("tent", "online"), ("NC-TTT", "episodic"), ("NC-TTT", "online"),
    ]  # fmt: skip
    cells = unique_cells(chosen)
    assert len(cells) == 4 * 2 * 2 * 2 + 3 * 2 * 2 * 2  # what stands still is shared by both methods
    run_cells(cells, store)
    for plan in chosen:
        found = attribute(plan, store)
        assert found.statistics.mean + found.gradient.mean == pytest.approx(found.total.mean, abs=1e-12)
        accuracy = found.accuracy
        assert found.statistics.mean == pytest.approx(accuracy["batch"] - accuracy["source"])
        assert found.gradient.mean == pytest.approx(accuracy["batch + gradient"] - accuracy["batch"])
        assert len(set(accuracy.values())) > 3  # five ways, not one
        streams = {way: [cell.scenes for cell in group] for way, group in plan.ways.items()}
        assert all(scenes == streams["source"] for scenes in streams.values())


def test_each_way_is_what_it_says(checkpoint):
    (plan,) = plans(small_grid.grid(checkpoint, methods=[Entry(method="nc_ttt", checkpoint=checkpoint)]), "blend(0.3)")
    norms = {
        way: (cells[0].method["name"], cells[0].method["norm"], cells[0].steps) for way, cells in plan.ways.items()
    }
    assert norms == {
        "source": ("source", "source", (0,)),
        "batch": ("ptbn", "batch", (0,)),
        "blend": ("ptbn", "blend(0.3)", (0,)),
        "batch + gradient": ("nc_ttt", "batch", (2,)),
        "gradient alone": ("nc_ttt", "source", (2,)),
    }


def test_what_ran_otherwise_is_a_subject_of_its_own(checkpoint):
    entry = Entry(method="nc_ttt", checkpoint=checkpoint)
    corruptions, sizes = ["clean", "fog", "contrast"], [20, 40]
    chosen = plans(
        small_grid.grid(checkpoint, methods=[entry], corruptions=corruptions, severities=[1, 5], batch_sizes=sizes)
    )
    assert [(plan.subject.severity, plan.subject.batch_size) for plan in chosen] == [
        (0, 20), (0, 40), (1, 20), (1, 40), (5, 20), (5, 40),
    ]  # fmt: skip
    labels = {cell.label for plan in chosen for cell in plan.cells()}
    assert labels == {"source", "ptbn", "ptbn blend(0.5)", "nc_ttt batch", "nc_ttt source"}


def test_a_sequence_is_divided_too(checkpoint, store):
    entry = Entry(method="nc_ttt", checkpoint=checkpoint)
    (plan,) = plans(small_grid.grid(checkpoint, methods=[entry], protocols=["continual"], images=100))
    run_cells(unique_cells([plan]), store)
    found = attribute(plan, store)
    assert found.statistics.mean + found.gradient.mean == pytest.approx(found.total.mean, abs=1e-12)


def test_entries_that_contradict_each_other_are_refused(checkpoint):
    entries = [Entry(method="nc_ttt", checkpoint=checkpoint, settings={"lr": lr}) for lr in (0.1, 0.2)]
    with pytest.raises(InputError, match="two entries are called 'nc_ttt'"):
        plans(small_grid.grid(checkpoint, methods=entries))


def test_without_a_method_that_learns_there_is_nothing_to_divide(checkpoint):
    with pytest.raises(InputError, match="no method of this grid learns"):
        plans(small_grid.grid(checkpoint, methods=[Entry(method="ptbn", checkpoint=checkpoint)]))


def test_cells_that_were_not_run_are_told(checkpoint, store):
    (plan,) = plans(small_grid.grid(checkpoint, methods=[Entry(method="nc_ttt", checkpoint=checkpoint)]))
    with pytest.raises(InputError, match="no predictions of source on gaussian_noise"):
        attribute(plan, store)
