"""Every method of METHODS keeps the contract on every architecture."""

import pytest

from contract import FactToy, PrototypeToy, RandomToy, RestoringToy
from ncttt.methods import METHODS
from ncttt.testing.cases import CLASSIFIERS, Case
from ncttt.testing.contract import CHECKS, check_loss_falls_on_its_own_batch

# TENT moves BatchNorm layers unless it is told otherwise, and a transformer has none.
# TTT-MAE's loss falls by less than it varies from one mask of a few images to another.
SETTINGS = {("tent", "vit"): {"moves": "norm"}, ("ttt_mae", "vit"): {"masks": 16, "optimizer": "adam"}}
# Filters by certainty and by what is new would leave hardly any of the few images of a check.
OPEN = {"margin": 1.0, "redundancy": 2.0}
CONFIDENT = {
    "eta": OPEN,
    "eata": OPEN,
    "rdumb": OPEN,
    "sar": {"margin": 1.0, "recovery": 0.0, "rho": 1e-3},
    "roid": {},
    "deyo": {"margin": 1.0, "least_drop": -1.0},
    # CoTTA's loss is what views of an image differ by, which is nothing where no image has a class.
    "cotta": {"views": 8, "restored": 0.0},
}
# Other images count at each step, so only their own tests, which hold that still, can see their loss fall.
NEVER_STILL = {"roid", "memo"}
QUICK = {"memo": {"views": 4}}  # of 32
# Memories that are full, and learned from, after the first batch of a check.
SMALL = {name: {"capacity": 6, "every": 6} for name in ("rotta", "note")}
# Methods for some architectures alone; their own tests prove that they refuse the others.
MADE_FOR = {"ttt_mae": {"vit"}}
PAIRS = [
    pytest.param(method, architecture, id=f"{method.name}-{architecture}")
    for method in [*METHODS.values(), RandomToy, PrototypeToy, RestoringToy, FactToy]
    for architecture in CLASSIFIERS
    if architecture in MADE_FOR.get(method.name, CLASSIFIERS)
]

pytestmark = pytest.mark.filterwarnings("ignore:.*has no BatchNorm")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize(("method", "architecture"), PAIRS)
def test_contract(method, architecture, check):
    settings = SETTINGS.get((method.name, architecture), (CONFIDENT | QUICK | SMALL).get(method.name, {}))
    if method.name in NEVER_STILL and check is check_loss_falls_on_its_own_batch:
        pytest.skip("in its own tests")
    check(Case(architecture, method(**settings), confident=method.name in CONFIDENT))
