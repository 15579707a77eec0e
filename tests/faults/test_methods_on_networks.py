"""Every method on networks that may lack what it needs: it adapts, or says in one line what is missing."""

import warnings

import pytest
import torch
from torch import nn

import ncttt
from ncttt import InputError
from ncttt.adapt.small_batches import SmallBatchWarning
from ncttt.methods import METHODS, Method

CLASSES, TAPS = 4, {"mlp": "1", "group": "2", "layer": "blocks.0", "conv_last": "2"}


def mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, CLASSES))


def group_norm() -> nn.Module:
    norms = (nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.GroupNorm(2, 8), nn.ReLU())
    return nn.Sequential(nn.Conv2d(3, 8, 3), *norms, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, CLASSES))


def layer_norm() -> nn.Module:
    return ncttt.models.vit(num_classes=CLASSES, image_size=8, patch_size=4, width=16, depth=2)


def conv_last() -> nn.Module:
    norms = (nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, CLASSES, 1))
    return nn.Sequential(nn.Conv2d(3, 8, 3), *norms, nn.AdaptiveAvgPool2d(1), nn.Flatten())


NETWORKS = {"mlp": mlp, "group": group_norm, "layer": layer_norm, "conv_last": conv_last}
NO_NORM = "use a method that moves all weights, such as MEMO or CoTTA, or none, such as LAME or T3A"
NO_AFFINE = f"moves scale and shift of normalisation layers; found none in Sequential: {NO_NORM}"
NO_LINEAR = "looks at the linear layer that gives the logits; found none that runs in Sequential: "
NO_TOKENS = "TTT-MAE needs a transformer whose layers give patch tokens"
# What a method says of a network that lacks what it needs; all other pairs adapt.
LACKING = {
    (
        "actmad",
        "mlp",
    ): f"ActMAD compares the outputs of normalisation layers; found none that runs in Sequential: {NO_NORM}",
    ("tent", "mlp"): f"TENT moves scale and shift of BatchNorm layers; found none in Sequential: {NO_NORM}",
    ("tent", "group"): "found none in Sequential: Tent(moves='norm') also moves other normalisation layers",
    ("tent", "layer"): "found none in ViT: Tent(moves='norm') also moves other normalisation layers",
    **{
        (name, "mlp"): f"{METHODS[name].title} {NO_AFFINE}"
        for name in ("eta", "eata", "rdumb", "sar", "deyo", "roid", "rotta", "note")
    },
    ("lame", "conv_last"): f"Lame {NO_LINEAR}name the layer whose output to use: ncttt.Lame(layer='...')",
    ("t3a", "conv_last"): f"T3A {NO_LINEAR}use a method that does not look at it",
    **{("ttt_mae", network): NO_TOKENS for network in ("mlp", "group", "conv_last")},
}
# What they say of plain modules, which tell neither the shape of their images nor, without a linear layer, the classes.
OF_PLAIN = LACKING | {
    ("t3a", "conv_last"): "T3A looks at the linear layer that gives the logits; found none in Sequential",
    **{
        (name, "conv_last"): "must know the number of classes, which a plain Sequential without a linear layer does not"
        for name in ("eta", "rdumb", "roid")
    },
    **{
        (name, network): "keeps images, so it must know their shape, which a plain module does not tell"
        for name in ("rotta", "note")
        for network in NETWORKS
        if (name, network) != ("rotta", "mlp")
    },
}
# Nothing is left of these without BatchNorm, which a warning says.
STATISTICS_ALONE = {("ptbn", network) for network in ("mlp", "group", "layer")}
OPEN = {"margin": 1.0, "redundancy": 2.0}  # every image counts, although these networks are certain of none
SETTINGS = {
    **dict.fromkeys(("eta", "eata", "rdumb"), OPEN),
    "sar": {"margin": 1.0},
    "deyo": {"margin": 1.0, "least_drop": -1.0},
    "memo": {"views": 4},
    "cotta": {"views": 2},
    **{name: {"capacity": 6, "every": 6} for name in ("rotta", "note")},
    **{name: {"steps": 1, "lr": 1e-3} for name in ("ttt", "ttt_plus", "clust3", "ttt_flow", "ttt_mae")},
}


def images(seed: int = 0) -> torch.Tensor:
    return torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def made(network: str) -> nn.Module:
    torch.manual_seed(0)
    return NETWORKS[network]().eval()


def adapter_of(method: Method, network: str) -> ncttt.Adapter:
    """With a model that knows all that source images can tell."""
    if not method.needs_training():
        return ncttt.Adapter(ncttt.calibrated(made(network), method, [images()]), protocol="online")
    model = ncttt.attach(made(network), TAPS[network], method, images())
    model.calibrate([images()])
    return ncttt.Adapter(model, protocol="online")


def changes(adapter: ncttt.Adapter, network: str) -> bool:
    """Whether two batches move anything, or are predicted otherwise than by the network itself."""
    before = {name: tensor.clone() for name, tensor in adapter.model.state_dict().items()}
    logits = [adapter(images(seed)) for seed in (1, 2)][1]
    moved = any(not torch.equal(tensor, before[name]) for name, tensor in adapter.model.state_dict().items())
    with torch.no_grad():
        return moved or not torch.allclose(logits, made(network)(images(2)), atol=1e-6)


quiet = pytest.mark.filterwarnings("ignore::ncttt.adapt.small_batches.SmallBatchWarning", "ignore:.*has no BatchNorm")
PAIRS = [(name, network) for name in METHODS for network in NETWORKS]
PLAIN = [pair for pair in PAIRS if not METHODS[pair[0]].has_branch]


def method_of(name: str) -> Method:
    return METHODS[name](**SETTINGS.get(name, {}))


@quiet
@pytest.mark.sound
@pytest.mark.parametrize(("name", "network"), [pair for pair in PAIRS if pair not in LACKING])
def test_a_method_with_all_that_it_needs_adapts(name, network):
    does_something = name != "source" and (name, network) not in STATISTICS_ALONE
    assert changes(adapter_of(method_of(name), network), network) == does_something


@quiet
@pytest.mark.parametrize(("name", "network"), LACKING)
def test_what_a_method_lacks_is_one_clear_line(name, network):
    with pytest.raises(InputError) as error:
        changes(adapter_of(method_of(name), network), network)
    assert LACKING[name, network] in str(error.value)
    assert "\n" not in str(error.value)


@quiet
@pytest.mark.sound
@pytest.mark.parametrize(("name", "network"), [pair for pair in PLAIN if pair not in OF_PLAIN])
def test_a_plain_module_with_all_that_is_needed_is_adapted(name, network):
    assert ncttt.Adapter(made(network), method_of(name))(images()).isfinite().all()


@quiet
@pytest.mark.parametrize(("name", "network"), [pair for pair in PLAIN if pair in OF_PLAIN])
def test_what_a_plain_module_lacks_is_one_clear_line(name, network):
    with pytest.raises(InputError) as error:
        ncttt.Adapter(made(network), method_of(name))(images())
    assert OF_PLAIN[name, network] in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].has_branch])
def test_a_plain_module_has_no_branch_and_no_facts_of_the_source(name):
    with pytest.raises(
        InputError, match=f"{METHODS[name].__name__} needs (a model trained for it|the .* of the source)"
    ):
        ncttt.Adapter(made("group"), METHODS[name]())


@pytest.mark.parametrize("network", sorted({network for _, network in STATISTICS_ALONE}))
def test_statistics_that_set_nothing_are_told_and_that_nothing_else_is_left(network):
    with pytest.warns(UserWarning, match="has no BatchNorm that keeps source.*so PTBN predicts as the model by itself"):
        ncttt.Adapter(made(network), ncttt.PTBN())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", SmallBatchWarning)
        ncttt.Adapter(made(network), METHODS["cotta"]())
    assert ["predicts as the model" in str(each.message) for each in told] == [False]  # CoTTA moves weights as well


def test_images_that_a_method_cannot_use_are_one_clear_line():
    wide = torch.rand(6, 3, 8, 10)
    with pytest.raises(InputError, match="TTT turns images by 90 degrees, so they must be square; found 8x10"):
        ncttt.Adapter(ncttt.attach(made("group"), "2", METHODS["ttt"](), wide))(wide)
    adapter = ncttt.Adapter(made("group"), METHODS["deyo"](margin=1.0, patches=9))
    with pytest.raises(InputError, match="DeYO shuffles patches, and images of 8x8 cannot be cut into 9x9 of them"):
        adapter(images())
