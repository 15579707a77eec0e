"""From a grid to cells: what is in the key, and what is refused."""

import json
import re
from dataclasses import replace

import pytest

import ncttt
import small_grid
from ncttt import InputError
from ncttt.benchmark import cells_of, run_grid
from ncttt.benchmark.grid import Entry


def test_the_product_of_all_lists_scenario_by_scenario(checkpoint):
    cells = cells_of(
        small_grid.grid(
            checkpoint, severities=[1, 5], protocols=["episodic", "online"], batch_sizes=[20, 40], seeds=[0, 1, 2]
        )
    )
    assert len(cells) == len({cell.key for cell in cells}) == 2 * 2 * 2 * 2 * 3 * 3
    scenarios = [cell.scenarios for cell in cells]
    assert scenarios == sorted(scenarios, key=scenarios.index)  # those of one scenario stand together
    assert {cell.scenarios[0].severity for cell in cells} == {1, 5}


def test_several_data_sets_make_a_grid_on_each(checkpoint, monkeypatch):
    from ncttt.data import DATA_SETS

    class Other(DATA_SETS["digits"]):
        def read(self, root, split, **options):
            return super().read(root, "train")

    one = cells_of(small_grid.grid(checkpoint))
    assert [cell.key for cell in cells_of(small_grid.grid(checkpoint, data=["digits"]))] == [cell.key for cell in one]
    # A second set under another name: the training part of the same digits.
    monkeypatch.setitem(DATA_SETS._loaded, "other", Other)
    both = cells_of(small_grid.grid(checkpoint, data=["digits", "other"]))
    assert [cell.columns()["data"] for cell in both] == ["digits"] * 6 + ["other"] * 6
    assert len({cell.key for cell in both}) == 12
    with pytest.raises(InputError, match="data 'digits' is named twice"):
        cells_of(small_grid.grid(checkpoint, data=["digits", "digits"]))
    with pytest.raises(InputError, match="at least one of its data"):
        cells_of(small_grid.grid(checkpoint, data=[]))


def test_names_of_corruptions_and_clean_images(checkpoint):
    def names(*given: str) -> list[str]:
        cells = cells_of(
            small_grid.grid(
                checkpoint, corruptions=list(given), methods=[Entry(method="source", checkpoint=checkpoint)]
            )
        )
        return [cell.columns()["corruption"] for cell in cells]

    assert len(names("all")) == 15
    assert names("extra") == ["speckle_noise", "gaussian_blur", "spatter", "saturate"]
    assert names("fog", "clean") == ["clean", "fog"]


@pytest.mark.parametrize(
    "change",
    [
        {"images": 119},
        {"skip": 1},
        {"split": "val", "images": 100},
        {"severities": [4]},
        {"constants": None},
        {"protocols": ["online"]},
        {"orders": ["by_class"]},
        {"orders": ["mixed"]},
        {"orders": ["given"]},
        {"sequences": ["gradual"]},
        {"sequences": ["visits(2)"]},
        {"sequences": ["clean_every(2)"]},
        {"batch_sizes": [41]},
        {"seeds": [1]},
        {"threads": 2},
    ],
)
def test_the_key_depends_on_all_that_determines_a_row(checkpoint, change):
    before, after = cells_of(small_grid.grid(checkpoint)), cells_of(small_grid.grid(checkpoint, **change))
    assert {cell.key for cell in before}.isdisjoint(cell.key for cell in after)


def test_the_table_of_constants_counts_not_how_it_was_asked_for(checkpoint):
    by_size, by_name = (cells_of(small_grid.grid(checkpoint, constants=name)) for name in (None, "cifar"))
    assert [cell.key for cell in by_size] == [cell.key for cell in by_name]


def test_steps_of_an_entry_come_before_those_of_the_grid(checkpoint):
    entry = Entry(method="nc_ttt", checkpoint=checkpoint)

    def steps(entry: Entry, given: list[int] | None) -> tuple[int, ...]:
        return cells_of(small_grid.grid(checkpoint, methods=[entry], steps=given))[0].steps

    assert steps(entry, None) == (2,)
    assert steps(entry, [1, 5]) == (1, 5)
    assert steps(replace(entry, settings={"steps": 7}), [1, 5]) == (7,)
    assert steps(replace(entry, steps=[0, 9]), [1, 5]) == (0, 9)
    assert steps(Entry(method="ptbn", checkpoint=checkpoint), [1, 5]) == (0,)


@pytest.mark.parametrize("change", [{"settings": {"lr": 0.02}}, {"steps": [0, 1]}, {"stop": "source"}, {"stop": 0.7}])
def test_the_key_depends_on_the_methods_settings(checkpoint, change):
    grid = small_grid.grid(checkpoint)
    other = replace(grid, methods=[replace(grid.methods[2], **change)])
    assert cells_of(other)[0].key not in {cell.key for cell in cells_of(grid)}


def test_the_key_depends_on_the_weights_not_on_names(checkpoint, tmp_path):
    model = ncttt.load(checkpoint)
    ncttt.save(model, tmp_path / "same")
    model.classifier.fc.bias.data += 1
    ncttt.save(model, tmp_path / "other")
    keys = [cells_of(small_grid.grid(str(path)))[2].key for path in (checkpoint, tmp_path / "same", tmp_path / "other")]
    assert keys[0] == keys[1] != keys[2]
    grid = small_grid.grid(checkpoint)
    renamed = replace(grid, methods=[replace(grid.methods[2], label="ours")])
    assert cells_of(renamed)[0].key == cells_of(grid)[2].key


def test_a_method_may_be_a_class_of_ones_own(checkpoint, store):
    entry = Entry(method="own_method:Sharper", checkpoint=checkpoint, settings={"factor": 3.0})
    outcome = run_grid(small_grid.grid(checkpoint, methods=[entry], corruptions=["contrast"]), store, executor="here")
    assert outcome.failures == []
    (row,) = outcome.rows
    assert row["method"] == "own_method:Sharper"
    assert json.loads(row["settings"]).items() >= {"name": "own_method:Sharper", "factor": 3.0}.items()


BAD = [
    ({"corruptions": ["fgo"]}, "no corruption 'fgo'; did you mean 'fog'"),
    ({"corruptions": []}, "at least one of its corruptions"),
    ({"corruptions": ["all", "fog"]}, "'fog' is named twice"),
    ({"severities": [6]}, "from 1 to 5; found 6"),
    ({"protocols": ["onlin"]}, "no protocol 'onlin'; did you mean 'online'"),
    ({"protocols": ["mixed"]}, "no protocol but an order; write protocols: [continual] and orders: [mixed]"),
    ({"orders": ["sorted"]}, "no order 'sorted'"),
    ({"orders": ["mixed(sorted)"]}, "no order 'mixed(sorted)'"),
    ({"orders": ["mixed(random)"]}, "the order 'mixed(random)' is called 'mixed'"),
    ({"orders": ["mixed(mixed)"]}, "no order 'mixed(mixed)'"),
    ({"corruptions": ["clean"], "orders": ["mixed"]}, "this grid has no cells"),
    ({"orders": ["dirichlet(0)"]}, "no order 'dirichlet(0)'"),
    ({"sequences": ["twice"]}, "no sequence of domains 'twice'"),
    ({"sequences": ["visits(0)"]}, "a whole number of times from 1; found visits(0)"),
    ({"sequences": ["visits(1)"]}, "the sequence 'visits(1)' is called 'once'"),
    ({"sequences": ["visits(2)+gradual"]}, "the sequence 'visits(2)+gradual' is called 'gradual+visits(2)'"),
    ({"sequences": []}, "at least one of its sequences"),
    ({"corruptions": ["clean"], "sequences": ["gradual"]}, "this grid has no cells"),
    ({"batch_sizes": [0]}, "batch_sizes must be at least 1; found 0"),
    ({"batch_sizes": []}, "at least one of its batch_sizes; found none"),
    ({"images": 30}, "batches of 40 images are asked for, and there are 30 images of digits"),
    ({"seeds": [0, 0]}, "seeds 0 is named twice"),
    ({"images": 501}, "asked for 501 images of digits test, which has 500"),
    ({"images": 400, "skip": 200}, "400 images behind the first 200"),
    ({"steps": [2, 1]}, "step counts must rise"),
    ({"threads": 0}, "threads must be a whole number from 1; found 0"),
    ({"constants": "mnist"}, "no constants 'mnist'"),
    ({"corruptions": ["clean"], "protocols": ["continual"]}, "this grid has no cells"),
    ({"data": "digit"}, "did you mean 'digits'"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_what_makes_no_grid_is_told(checkpoint, change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        cells_of(small_grid.grid(checkpoint, **change))


BAD_ENTRIES = [
    ({"method": "nc_tt"}, "no method 'nc_tt'; did you mean 'nc_ttt'"),
    ({"method": "nowhere:Method"}, "cannot load 'nowhere:Method'"),
    ({"settings": {"lrr": 1}}, "has no setting 'lrr'; did you mean 'lr'"),
    ({"settings": {"channels": 6}}, "was trained with another channels"),
    ({"method": "clust3"}, "clust3 needs a checkpoint trained for it"),
    ({"checkpoint": "cifar10-smal"}, "no folder 'cifar10-smal' and no model of that name in the zoo"),
    ({"checkpoint": []}, "NC-TTT has no checkpoint"),
    ({"settings": {"lr": "fast"}}, "the settings {'lr': 'fast'} of nc_ttt cannot be"),
    ({"settings": {"steps": 3}}, "has steps [0, 2] and the setting steps=3; leave one out"),
    ({"method": "tent", "stop": 0.7}, "a level to stop at needs a method with a score"),
    ({"method": "tent", "stop": "sorce"}, "stop must be 'source'"),
    ({"checkpoint": "nowhere/at/all"}, "no checkpoint in nowhere/at/all"),
]


@pytest.mark.parametrize(("change", "message"), BAD_ENTRIES)
def test_what_makes_no_entry_is_told(checkpoint, change, message):
    entry = replace(small_grid.grid(checkpoint).methods[2], **change)
    with pytest.raises(InputError, match=re.escape(message)):
        cells_of(small_grid.grid(checkpoint, methods=[entry]))


def test_cells_that_conflict_are_refused(checkpoint):
    entry = small_grid.grid(checkpoint).methods[2]
    with pytest.raises(InputError, match="'NC-TTT' and 'again' are the same on"):
        cells_of(small_grid.grid(checkpoint, methods=[entry, replace(entry, label="again")]))
    with pytest.raises(InputError, match="two entries are called 'NC-TTT' on"):
        cells_of(small_grid.grid(checkpoint, methods=[entry, replace(entry, settings={"lr": 0.5})]))


def test_images_of_another_size_than_the_model_was_made_for_are_refused(tmp_path):
    import torch

    model = ncttt.attach(ncttt.models.small(width=4), "layer3", ncttt.Source(), torch.rand(2, 3, 64, 48))
    ncttt.save(model, tmp_path)
    with pytest.raises(InputError, match="was made for images of 64x48; those of digits are 32x32"):
        cells_of(small_grid.grid(str(tmp_path), methods=[Entry(method="source", checkpoint=str(tmp_path))]))


def test_classes_that_do_not_fit_the_data_are_refused(tmp_path):
    import torch

    model = ncttt.attach(ncttt.models.small(num_classes=7, width=4), "layer3", ncttt.Source(), torch.rand(2, 3, 32, 32))
    ncttt.save(model, tmp_path)
    with pytest.raises(InputError, match="tells 7 classes apart; digits has 10"):
        cells_of(small_grid.grid(str(tmp_path), methods=[Entry(method="source", checkpoint=str(tmp_path))]))


def test_fast_counts_on_a_gpu_alone(checkpoint):
    plain = cells_of(small_grid.grid(checkpoint))[0]
    fast = cells_of(small_grid.grid(checkpoint, fast=True))[0]
    assert fast.fast
    assert fast.key == plain.key
    assert replace(fast, device="cuda").key != replace(plain, device="cuda").key
    assert replace(fast, device="cuda:1").key == replace(fast, device="cuda").key


def test_a_batch_that_nobody_asked_for_has_the_images_there_are(checkpoint):
    sizes = [
        {cell.batch_size for cell in cells_of(small_grid.grid(checkpoint, batch_sizes=None, images=images))}
        for images in (30, 200)
    ]
    assert sizes == [{30}, {128}]


SHORT = [
    (
        "rotta",
        {},
        {"protocols": ["episodic"]},
        "RoTTA learns from images that it remembers, and the protocol 'episodic'",
    ),
    (
        "rotta",
        {},
        {"images": 80},
        "a step after each 64 images (every), and of the 80 images until the protocol 'online'",
    ),
    ("note", {"every": 81}, {}, "NOTE takes a step after each 81 images (every)"),
    ("note", {"capacity": 121}, {}, "NOTE has a memory of 121 images (capacity), which the 120 images until"),
    ("tent", {"gather": 121}, {}, "gather=121 waits for so many images to learn from, and the 120 images until"),
    ("ptbn", {"norm": "window(121)"}, {}, "'window(121)' takes the statistics of the last 121 images, which the 120"),
]


@pytest.mark.parametrize(("method", "settings", "change", "message"), SHORT)
def test_a_stream_that_is_too_short_for_a_method_is_refused(checkpoint, method, settings, change, message):
    entry = Entry(method=method, checkpoint=checkpoint, settings=settings)
    grid = small_grid.grid(checkpoint, **{"methods": [entry], "protocols": ["online"]} | change)
    with pytest.raises(InputError, match=re.escape(message)):
        cells_of(grid)


@pytest.mark.parametrize(
    ("method", "settings", "protocols"),
    [
        ("note", {"every": 80, "capacity": 120}, ["online"]),  # 80 of 120 images come before the last batch of 40
        ("note", {"every": 200, "capacity": 240}, ["continual"]),  # which remembers both corruptions
        ("rotta", {"steps": 0}, ["episodic"]),  # somebody asked it not to learn
        ("ptbn", {"norm": "window(120)"}, ["online"]),
        ("tent", {"gather": 120}, ["online"]),
    ],
)
def test_a_stream_that_is_just_long_enough_is_measured(checkpoint, method, settings, protocols):
    entry = Entry(method=method, checkpoint=checkpoint, settings=settings)
    assert cells_of(small_grid.grid(checkpoint, methods=[entry], protocols=protocols))
