"""Every method of METHODS keeps the contract on every architecture."""

import pytest

from contract import RandomToy
from ncttt.methods import METHODS
from ncttt.testing.cases import CLASSIFIERS, Case
from ncttt.testing.contract import CHECKS

# TENT moves BatchNorm layers unless it is told otherwise, and a transformer has none.
SETTINGS = {("tent", "vit"): {"moves": "norm"}}

pytestmark = pytest.mark.filterwarnings("ignore:.*has no BatchNorm")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("architecture", CLASSIFIERS)
@pytest.mark.parametrize("method", [*METHODS.values(), RandomToy], ids=lambda method: method.name)
def test_contract(method, architecture, check):
    check(Case(architecture, method(**SETTINGS.get((method.name, architecture), {}))))
