"""Batches that are too small for the statistics and steps that are taken from them: treated with care, or warned of.

The numbers are measured on CIFAR-10 (docs/adapt.md, results/statistics_by_batch.csv, results/small_batches.csv).
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
# Behind the source gate, which leaves most source images to the source model: the best statistics for batches below
# ENOUGH in a stream that remembers, and for those below FEW in one that does not; below FEW steps did not help.
STREAM, ALONE, FEW = "stream(0.01)", "prior(4)", 16


class SmallBatchWarning(UserWarning):
    """A batch is too small for the statistics or the steps that are taken from it."""


class SmallBatches:
    """What an adapter does about batches that are too small.

    Behind the source gate (`gated`) a small batch gets statistics that follow its size, in a stream that `remembers`
    those of the images before it, and a very small one no steps; unless the statistics were `chosen` by the caller.
    Elsewhere the first batch that is too small is warned of.
    """

    def __init__(self, gated: bool, chosen: bool, remembers: bool):
        self._careful, self._gated, self._remembers = gated and not chosen, gated, remembers
        self._told = False

    def moves_statistics(self, norm: tuple[Policy, Policy]) -> bool:
        """Whether small batches may move the statistics, whatever the policy of larger ones is."""
        return self._careful and self._remembers and is_large(norm[1], 1, batch_share(ALONE, 1))

    def suited(self, model: AdaptableModel, images: int, steps: int) -> AdaptableModel:
        """The model to adapt to a batch of so many images by so many steps."""
        if not 0 < images < ENOUGH or not model.model.batch_norms():
            return model
        of_batch = model.method.learns_from == "batch"
        if of_batch and self._careful and not any(map(moves_buffers, model.norm)):
            return careful(model, images, self._remembers)
        learned = max(images, model.method.gather)
        learns = of_batch and learned < ENOUGH and not self._gated and model.optimizer is not None and steps > 0
        if learns or is_risky(model.norm[0], learned) or is_risky(model.norm[1], images):
            self._warn(model.norm, images, learns)
        return model

    def _warn(self, norm: tuple[Policy, Policy], images: int, learns: bool) -> None:
        if self._told:
            return
        self._told = True
        cause = f"the steps on a batch of {images}" if learns else f"norm={norm[1]!r} on a batch of {images}"
        policy = STREAM if self._remembers else blend(safe_share(images))
        remedy = f"norm={policy!r}" + (" with steps=0" if learns else "")
        if learns and self._remembers:
            remedy += f" (or with the method's gather={ENOUGH} and norm={('batch', STREAM)!r}, to learn from groups)"
        warn_caller(
            f"{cause} can make the model worse than it was: use stop='source' (--stop source) without a norm of your "
            f"own, {remedy}, or batches of {ENOUGH} images or more",
            SmallBatchWarning,
        )


def careful(model: AdaptableModel, images: int, remembers: bool) -> AdaptableModel:
    """The model with statistics that suit so few images, and without steps where they are very few.

    What gathers images keeps its steps, which are on groups, and the statistics of these.
    """
    few, most, gathers = images < FEW, batch_share(ALONE, images), model.method.gather > 0
    if few or remembers:
        policy = STREAM if remembers and is_large(model.norm[1], images, most) else ALONE
        first, second = (policy if is_large(each, images, most) else each for each in model.norm)
        model = replace(model, norm=(model.norm[0] if gathers else first, second))
    return replace(model, optimizer=None) if few and not gathers else model


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
