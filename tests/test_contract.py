"""Every method of METHODS keeps the contract on every architecture."""

import pytest

from contract import FactToy, PrototypeToy, RandomToy, RestoringToy
from ncttt.methods import METHODS
from ncttt.testing.cases import CLASSIFIERS, Case
from ncttt.testing.contract import CHECKS

# TENT moves BatchNorm layers unless it is told otherwise, and a transformer has none.
# TTT-MAE's loss falls by less than it varies from one mask of a few images to another.
SETTINGS = {("tent", "vit"): {"moves": "norm"}, ("ttt_mae", "vit"): {"masks": 16, "optimizer": "adam"}}
# Filters by certainty and by what is new would leave hardly any of the few images of a check.
OPEN = {"margin": 1.0, "redundancy": 2.0}
# CoTTA's loss is what views of an image differ by, which is nothing where no image has a class.
CONFIDENT = {"eta": OPEN, "eata": OPEN, "rdumb": OPEN, "cotta": {"views": 8, "restored": 0.0}}
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
    settings = SETTINGS.get((method.name, architecture), (CONFIDENT | SMALL).get(method.name, {}))
    check(Case(architecture, method(**settings), confident=method.name in CONFIDENT))
