"""The plans of the paper: every column has a training of its own, with the paper's settings, and each really runs."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_sets import write_cifar, write_cifar10_c, write_visda

import ncttt
from ncttt import Recipe
from ncttt.benchmark.tuning.trials import combinations
from ncttt.data import ImageSet, batches
from ncttt.methods.settings import method_from, settings_of
from ncttt.paper import ITEMS, Settings, read_plan, write_configurations
from ncttt.paper.measuring import grids_of
from ncttt.paper.plan import SCALES, still_columns
from ncttt.paper.search import tuning_of
from ncttt.training.job import read_job
from ncttt.training.launch import build_model, load_split
from ncttt.training.schedules import highest_rate

PLANS = ["cifar10", "cifar100", "visda"]
MODELS = ["plain", "ttt", "ttt_plus", "clust3", "ttt_flow", "nc_ttt"]
HOME = Path("home")
PAPER = {"cifar10": 10, "cifar100": 100, "visda": 12}  # classes


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("root")
    write_cifar(root, 10)
    write_cifar(root, 100)
    write_visda(root)
    return root


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", PLANS)
def test_every_plan_names_what_there_is(name, scale):
    plan = read_plan(name, scale)
    for column in plan.columns:
        kind = ncttt.METHODS[column.method]
        if plan.trained(column.model):
            job = plan.job(column.model, 0, HOME)
            assert not kind.has_branch or job.method == column.method
            method_from({"name": job.method, **job.method_settings})
        if not kind.has_branch:
            method_from({"name": column.method, **column.settings})


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", PLANS)
def test_every_planned_training_is_long_enough_for_its_rates(name, scale):
    plan = read_plan(name, scale)
    for model in plan.models:
        recipe = plan.job(model, 0, HOME).recipe
        steps = plan.learned // recipe.batch_size * recipe.epochs
        assert highest_rate(recipe, steps) == recipe.lr


@pytest.mark.parametrize("name", PLANS)
def test_the_papers_columns_all_have_a_training(name):
    plan = read_plan(name, "paper")
    assert list(plan.models) == MODELS
    assert {column.label for column in plan.columns} >= {"lame linear", "lame knn", "lame rbf"}
    assert {column.method for column in plan.columns} == {"source", "lame", "ptbn", "tent", *MODELS[1:]}
    assert {column.model for column in plan.columns if column.method in ("source", "lame", "tent")} == {"plain"}
    assert plan.seeds == [0, 1, 2]
    assert plan.job("ttt_flow", 2, HOME).start == str(HOME / name / "plain-seed2" / "last")


@pytest.mark.parametrize("name", PLANS)
def test_nc_ttt_has_the_papers_form(name):
    job = read_plan(name, "paper").job("nc_ttt", 1, HOME)
    paper = ncttt.NCTTT.paper_visda() if name == "visda" else ncttt.NCTTT.paper_cifar()
    assert settings_of(method_from({"name": "nc_ttt", "auxiliary_weight": 1.0, **job.method_settings})) == settings_of(
        paper
    )
    assert job.layer == ("layer1" if name == "visda" else "layer2")
    assert (job.recipe.epochs, job.recipe.batch_size) == ((100, 50) if name == "visda" else (350, 128))
    assert (job.recipe.weight_decay, job.recipe.momentum, job.recipe.seed) == (1e-4, 0.9, 1)
    assert job.split == ("fit" if name == "visda" else "train")


@pytest.mark.filterwarnings("ignore:after epoch 1")  # one step teaches no branch
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", PLANS)
def test_one_training_step_and_one_adapted_batch_really_run(name, model, root):
    plan = read_plan(name, "paper")
    job = replace(plan.job(model, 0, HOME, str(root)), start=None)
    fit, held_out = load_split(job, job.split), load_split(job, job.held_out)
    built = build_model(job, fit)
    recipe = job.recipe.but(epochs=1, batch_size=2, milestones=[], workers=0)
    ncttt.train(built, fit.subset(range(2)), recipe, held_out=held_out.subset(range(2)), observers=[])
    target = load_split(replace(job, train_size=None), plan.split)
    images, _ = next(iter(batches(target, 2)))
    columns = [column for column in plan.columns if column.model == model]
    assert columns
    for column in columns:
        settings = {"name": column.method, **(job.method_settings if column.method == job.method else {})}
        method = method_from(settings, **column.settings)
        adapter = ncttt.Adapter(built, method, steps=min(1, method.steps))
        assert adapter(images).shape == (2, len(fit.classes))
        assert adapter.trace.steps == min(1, method.steps)
        assert not adapter.trace.fell_back


def test_the_recipe_of_cifar():
    assert read_plan("cifar10", "paper").job("plain", 0, HOME).recipe == Recipe(
        epochs=350,
        batch_size=128,
        auxiliary_weight=1.0,
        lr=0.1,
        weight_decay=1e-4,
        branch_optimizer="sgd",
        branch_lr=0.1,
        branch_weight_decay=1e-4,
        schedule="multi_step",
        milestones=(150, 250),
        nesterov=False,
        augment="pad_crop_flip",
    )


def test_source_and_ptbn_run_on_every_model_to_tell_gains_apart():
    plan = read_plan("cifar10", "small")
    columns = [*plan.columns, *still_columns(plan.columns)]
    for method in ("source", "ptbn"):
        assert {column.model for column in columns if column.method == method and not column.settings} == set(
            plan.models
        )


def test_published_images_are_measured_where_they_are(tmp_path):
    plan = read_plan("cifar10", "small")
    write_cifar(tmp_path, 10)
    assert plan.images(str(tmp_path)) == "cifar10"
    write_cifar10_c(tmp_path)
    assert plan.images(str(tmp_path)) == "cifar10-c"
    (grid,) = grids_of(ITEMS["table4"], plan, Settings(root=str(tmp_path), images=8))
    assert (grid.data, grid.severities, grid.images) == ("cifar10-c", [4], 8)


def test_configurations_of_trainings_are_read_back_as_they_were(tmp_path):
    settings = Settings(scale="paper", seeds=[3], out=str(tmp_path / "out"))
    files = write_configurations([ITEMS["table1"], ITEMS["table3"]], settings, tmp_path / "configs")
    assert len(files) == 12
    plan = read_plan("visda", "paper")
    assert read_job(tmp_path / "configs" / "visda-nc_ttt-seed3.yaml") == plan.job("nc_ttt", 3, settings.home)
    assert (
        f"out: {settings.home / 'visda' / 'nc_ttt-seed3'}" in (tmp_path / "configs/visda-nc_ttt-seed3.yaml").read_text()
    )


@pytest.mark.parametrize("scale", SCALES)
def test_figure_8_ties_beta_to_two(scale):
    plan = read_plan("visda", scale)
    tuning = tuning_of(plan, Settings(scale=scale))
    trained = [settings for settings, _ in combinations(tuning)]
    pairs = {(settings["layer"], settings["method_settings.sigma_in"]) for settings in trained}
    assert len(pairs) == 16
    for settings in trained:
        assert settings["method_settings.sigma_out"] == 2 * settings["method_settings.sigma_in"]
    assert len(trained) == 16 * len(plan.seeds)
    assert bool(tuning.exception) == (tuning.split != "val") == (scale == "paper")


def test_running_statistics_are_those_of_the_authors():
    for name in PLANS:
        own = [c for c in read_plan(name, "paper").columns if c.method == "nc_ttt" and c.label is None]
        assert [c.settings for c in own] == [{"norm": "running(0.1, 1)", "discriminator_statistics": "batch"}]


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_configurations_take_steps_and_their_loss_falls(name):
    size = 256 if name == "visda" else 32
    generator = np.random.default_rng(0)
    count = 4 if name == "visda" else 8
    pixels = generator.integers(0, 256, (count, size, size, 3), dtype=np.uint8)
    data = ImageSet(pixels, np.arange(count) % PAPER[name], tuple(map(str, range(PAPER[name]))))
    wanted = replace(read_plan(name, "paper").job("nc_ttt", 0, HOME), start=None)
    model = build_model(wanted, data)
    ncttt.train(copy.deepcopy(model), data, wanted.recipe, epochs=1, batch_size=count, observers=[])  # as it stands
    recipe = wanted.recipe.but(augment="none" if name != "visda" else lambda images: images[..., :224, :224])
    history = ncttt.train(
        model, data, recipe, epochs=3, batch_size=count, lr=0.01, branch_lr=0.01, schedule="constant", observers=[]
    )
    totals = [epoch.cross_entropy + epoch.auxiliary for epoch in history]
    assert totals[-1] < totals[0]
    assert model.branch.heads[0].dim == (16 if name == "visda" else 96 * 16 * 16)
