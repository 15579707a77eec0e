"""Attribution: one checkpoint, five variants, and shares that add up."""

import pytest

import small_grid
from ncttt import InputError
from ncttt.benchmark import attribute
from ncttt.benchmark.attribution import divided, plans
from ncttt.benchmark.grid import Entry
from ncttt.methods import Tent


def test_statistics_and_steps_are_the_total(checkpoint, store):
    entries = [
        Entry(method="source", checkpoint=checkpoint),
        Entry(method="tent", checkpoint=checkpoint, settings={"lr": 0.05}),
        Entry(method="nc_ttt", checkpoint=checkpoint, label="NC-TTT", settings={"lr": 0.05, "steps": 3}),
    ]
    grid = small_grid.grid(checkpoint, methods=entries, protocols=["episodic", "online"], seeds=[0, 1])
    chosen = plans(grid)
    assert [(plan.subject.method, plan.subject.protocol) for plan in chosen] == [
        ("tent", "episodic"), ("tent", "online"), ("NC-TTT", "episodic"), ("NC-TTT", "online"),
    ]  # fmt: skip
    outcome = attribute(grid, store, executor="here")
    assert outcome.failures == []
    assert len(store.rows()) == 4 * 2 * 2 * 2 + 3 * 2 * 2 * 2  # what stands still is shared by both methods
    for plan, share in zip(chosen, outcome.attributions, strict=True):
        assert share.subject == plan.subject
        assert share.statistics.mean + share.steps.mean == pytest.approx(share.total.mean, abs=1e-12)
        accuracy = share.accuracy
        assert share.statistics.mean == pytest.approx(accuracy["batch"] - accuracy["source"])
        assert share.steps.mean == pytest.approx(accuracy["batch + steps"] - accuracy["batch"])
        assert len(set(accuracy.values())) > 3  # five variants, not one
        streams = {name: [cell.scenarios for cell in cells] for name, cells in plan.variants.items()}
        assert all(scenarios == streams["source"] for scenarios in streams.values())


def test_each_variant_is_what_it_says(checkpoint):
    (plan,) = plans(small_grid.grid(checkpoint, methods=[Entry(method="nc_ttt", checkpoint=checkpoint)]), "blend(0.3)")
    norms = {
        name: (cells[0].method["name"], cells[0].method["norm"], cells[0].steps)
        for name, cells in plan.variants.items()
    }
    assert norms == {
        "source": ("source", "source", (0,)),
        "batch": ("ptbn", "batch", (0,)),
        "blend": ("ptbn", "blend(0.3)", (0,)),
        "batch + steps": ("nc_ttt", "batch", (2,)),
        "steps alone": ("nc_ttt", "source", (2,)),
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
    assert labels == {"source", "ptbn", "ptbn blend(0.5) (attribution)", "nc_ttt", "nc_ttt source (attribution)"}


def test_a_sequence_is_divided_too(checkpoint, store):
    entry = Entry(method="nc_ttt", checkpoint=checkpoint)
    grid = small_grid.grid(checkpoint, methods=[entry], protocols=["continual"], orders=["random", "mixed"], images=100)
    shares = attribute(grid, store, executor="here").attributions
    assert [share.subject.order for share in shares] == ["random", "mixed"]
    for share in shares:
        assert share.statistics.mean + share.steps.mean == pytest.approx(share.total.mean, abs=1e-12)


def test_a_method_with_a_failed_cell_has_no_shares(checkpoint, store, monkeypatch):
    def adaptation_loss(self, model, images):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Tent, "adaptation_loss", adaptation_loss)
    entries = [Entry(method=name, checkpoint=checkpoint) for name in ("tent", "nc_ttt")]
    outcome = attribute(small_grid.grid(checkpoint, methods=entries), store, executor="here")
    assert [share.subject.method for share in outcome.attributions] == ["nc_ttt"]
    assert {(cell.method["name"], error) for cell, error in outcome.failures} == {("tent", "RuntimeError: out of luck")}


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
        divided(plan, store)
