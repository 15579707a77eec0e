"""Statistics policies as strings: how they are spelled, and what follows from a policy for the passes of a batch."""

import re
from typing import NamedTuple

from ncttt.base.errors import InputError

Policy = str
KNOWN = (
    "'source', 'batch', 'blend(alpha)' with 0 <= alpha <= 1, 'prior(images)' and 'instance(k)' with more than 0, "
    "'instance(k, share)' with a share of 0 to 1, "
    "'stream(rate)' with 0 < rate <= 1, 'window(images)' with a whole number from 1, or 'running(momentum, passes)' "
    "with 0 < momentum <= 1 and a whole number of passes from 1"
)
# The numbers of each kind of policy, as the rules of `_number`.
KINDS = {
    "source": (),
    "batch": (),
    "blend": ("share",),
    "prior": ("positive",),
    "instance": ("positive", "share"),
    "stream": ("rate",),
    "window": ("count",),
    "running": ("rate", "count"),
}
DEFAULTS = {"instance": (0.0,)}  # of the last numbers, which may be left out
MANY = 128  # images of a batch, where nobody says how many


class Parsed(NamedTuple):
    """The kind of a policy and its numbers."""

    kind: str
    numbers: tuple[float, ...]


def parse(policy: Policy) -> Parsed:
    """The policy that is spelled so, or an `InputError`.

    >>> parse("running(0.1, 20)")
    Parsed(kind='running', numbers=(0.1, 20.0))
    """
    match = re.fullmatch(r"([a-z]+)(?:\(([^()]*)\))?", str(policy))
    kind, texts = (match[1], re.split(", *", match[2]) if match[2] is not None else []) if match else ("", [])
    rules = KINDS.get(kind)
    numbers = [_number(*pair) for pair in zip(texts, rules or (), strict=False)]
    missing = len(rules or ()) - len(texts)
    numbers += DEFAULTS.get(kind, ())[-missing:] if missing > 0 and texts else ()
    if rules is None or len(texts) > len(rules) or len(numbers) != len(rules) or None in numbers:
        raise InputError(f"no statistics policy {policy!r}; use {KNOWN}")
    return Parsed(kind, tuple(number for number in numbers if number is not None))


def blend(alpha: float) -> Policy:
    """The policy that mixes `alpha` of the batch's statistics into the source's.

    >>> blend(0.6)
    'blend(0.6)'
    """
    return _spelled("blend", alpha)


def prior(images: float) -> Policy:
    """The policy that counts the source's statistics as so many images beside those of the batch.

    >>> prior(16)
    'prior(16)'
    """
    return _spelled("prior", images)


def instance(k: float, share: float = 0.0) -> Policy:
    """The policy of each image's own statistics, as far as they are more than `k` standard errors off the source's.

    With a `share` they are compared with a blend of the source's and the batch's; 1 is how NOTE's layers train.

    >>> instance(4), instance(4, 1)
    ('instance(4)', 'instance(4, 1)')
    """
    return _spelled("instance", k, share) if share else _spelled("instance", k)


def stream(rate: float) -> Policy:
    """The policy of a moving mean over the stream, which starts at the source's and moves by `rate` with each image.

    >>> stream(0.01)
    'stream(0.01)'
    """
    return _spelled("stream", rate)


def window(images: int) -> Policy:
    """The policy of the statistics of the last so many images, which are the source's until there were that many.

    >>> window(128)
    'window(128)'
    """
    return _spelled("window", images)


def running(momentum: float, passes: int = 1) -> Policy:
    """The policy of buffers that passes in training mode move by a momentum.

    A gradient pass moves them once. Where no gradient is taken, `passes` passes come before the prediction.

    >>> running(0.1, 20)
    'running(0.1, 20)'
    """
    return _spelled("running", momentum, passes)


def batch_share(policy: Policy, images: int = MANY) -> float:
    """The share of its own statistics that a policy gives to a batch of so many images, the first of its stream.

    >>> batch_share("batch"), batch_share("blend(0.25)"), batch_share("running(0.5, 2)")
    (1.0, 0.25, 0.75)
    >>> batch_share("prior(16)", 16), batch_share("window(128)", 16), batch_share("stream(0.5)", 2)
    (0.5, 0.125, 0.75)
    """
    kind, numbers = parse(policy)
    if kind in ("source", "batch", "instance"):
        return float(kind != "source")
    if kind == "prior":
        return images / (images + numbers[0])
    if kind == "window":
        return min(1.0, images / numbers[0])
    if kind == "stream":
        return 1 - (1 - numbers[0]) ** images
    return numbers[0] if kind == "blend" else 1 - (1 - numbers[0]) ** int(numbers[1])


def follows_size(policy: Policy) -> bool:
    """Whether a policy gives few images less weight than many, or each image only what it shows for certain."""
    return parse(policy).kind in ("source", "prior", "instance", "stream", "window")


def moves_buffers(policy: Policy) -> bool:
    """Whether batches under this policy move the buffers of BatchNorm layers.

    >>> moves_buffers("running(0.1, 20)"), moves_buffers("stream(0.01)"), moves_buffers("blend(0.5)")
    (True, True, False)
    """
    return needs_passes(policy) or moves_in_passing(policy)


def needs_passes(policy: Policy) -> bool:
    """Whether buffers move by passes of their own, before the prediction."""
    return parse(policy).kind == "running"


def moves_in_passing(policy: Policy) -> bool:
    """Whether the pass that predicts a batch also tells where the buffers move."""
    return parse(policy).kind in ("stream", "window")


def window_size(policy: Policy) -> int | None:
    """How many images a policy keeps the moments of."""
    kind, numbers = parse(policy)
    return int(numbers[0]) if kind == "window" else None


def stepping(policy: Policy) -> Policy:
    """The policy of one gradient pass: for a running one a single pass, because each step makes one.

    >>> stepping("running(0.1, 20)")
    'running(0.1, 1)'
    """
    return running(parse(policy).numbers[0]) if needs_passes(policy) else policy


def looking(policy: Policy) -> Policy:
    """The policy that shows what a pass under this one would see, without moving anything."""
    return "batch" if needs_passes(policy) else policy


def predicting(policy: Policy) -> Policy:
    """The policy of a prediction: for a running one the buffers as they stand."""
    return "source" if needs_passes(policy) else policy


def standing(policy: Policy) -> Policy:
    """The policy that predicts the last batch again, when all that moves has moved."""
    return "source" if moves_buffers(policy) else policy


def _spelled(kind: str, *numbers: float) -> Policy:
    """The policy of that kind, or an `InputError` unless it can have these numbers."""
    policy = f"{kind}({', '.join(map(repr, numbers))})"
    parse(policy)
    return policy


def _number(text: str, rule: str) -> float | None:
    """The number that a text gives, or None if the rule does not allow it."""
    if not re.fullmatch(r"[0-9]{1,9}" if rule == "count" else r"[0-9.eE+-]+", text):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    least = number >= 0 if rule == "share" else number >= 1 if rule == "count" else number > 0
    most = 1 if rule in ("share", "rate") else float("inf")
    return number if least and number <= most and number < float("inf") else None
