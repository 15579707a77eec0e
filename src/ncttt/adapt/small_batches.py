"""Batches that are too small for the statistics and steps that are taken from them: treated with care, or warned of.

The numbers are measured on CIFAR-10 (docs/adapt.md, results/small_batches.csv).
"""

from dataclasses import replace

from ncttt.adapt.batch import AdaptableModel
from ncttt.base.warning import warn_caller
from ncttt.model.norm import Policy, batch_share, blend, moves_buffers
from ncttt.model.policies import follows_size

# The share of batch statistics that costs clean images less than a point, from so many images a batch on.
SAFE_SHARES = {32: 0.3, 8: 0.2, 1: 0.1}
# From here on batch statistics and steps cost clean images little more than in any larger batch.
ENOUGH = 64
# Below it the source gate lets too many unusual source images pass for batch statistics to be safe behind it.
FEW = 4
GATED_SHARE = 0.2  # of those few; larger than without the gate, which leaves most source images to the source model


class SmallBatchWarning(UserWarning):
    """A batch is too small for the statistics or the steps that are taken from it."""


class SmallBatches:
    """What an adapter does about batches that are too small.

    Behind the source gate (`gated`) a batch of one to three images gets a safe share of its own statistics and no
    steps, unless its statistics were `chosen` by the caller. Elsewhere the first batch that is too small is warned of.
    """

    def __init__(self, gated: bool, chosen: bool):
        self._gated, self._chosen, self._told = gated, chosen, False

    def suited(self, model: AdaptableModel, images: int, steps: int) -> AdaptableModel:
        """The model to adapt to a batch of so many images by so many steps."""
        if not 0 < images < (FEW if self._gated else ENOUGH) or not model.model.batch_norms():
            return model
        of_batch = model.method.learns_from == "batch"
        if of_batch and self._gated and not self._chosen and not any(map(moves_buffers, model.norm)):
            return careful(model, images)
        learns = of_batch and not self._gated and model.optimizer is not None and steps > 0
        if learns or any(is_risky(policy, images) for policy in model.norm):
            self._warn(model.norm, images, learns)
        return model

    def _warn(self, norm: tuple[Policy, Policy], images: int, learns: bool) -> None:
        if self._told:
            return
        self._told = True
        cause = f"the steps on a batch of {images}" if learns else f"norm={norm[1]!r} on a batch of {images}"
        remedy = f"norm={blend(safe_share(images))!r}" + (" with steps=0" if learns else "")
        warn_caller(
            f"{cause} can make the model worse than it was: use stop='source' (--stop source) without a norm of your "
            f"own, {remedy}, or batches of {ENOUGH} images or more",
            SmallBatchWarning,
        )


def careful(model: AdaptableModel, images: int) -> AdaptableModel:
    """The model with a small share of the statistics of so few images, and without steps."""
    first, second = (blend(GATED_SHARE) if is_large(policy, images, GATED_SHARE) else policy for policy in model.norm)
    return replace(model, norm=(first, second), optimizer=None)


def is_risky(policy: Policy, images: int) -> bool:
    """Whether a policy gives a batch of so few images more than a safe share.

    >>> is_risky("batch", 8), is_risky("blend(0.2)", 8), is_risky("batch", 128)
    (True, False, False)
    """
    return images < ENOUGH and is_large(policy, images, safe_share(images))


def is_large(policy: Policy, images: int, share: float) -> bool:
    """Whether a policy gives a batch a larger share than that, whatever its size."""
    return not follows_size(policy) and batch_share(policy, images) > share


def safe_share(images: int) -> float:
    """The largest share of batch statistics that is safe for a batch of so many images."""
    return next(share for least, share in SAFE_SHARES.items() if images >= least)
