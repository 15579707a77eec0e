"""Passes of a method's own over other images than those of the joint pass: rotated, augmented or held-out ones."""

from collections.abc import Iterator
from contextlib import contextmanager

from ncttt.model.branched import Branched
from ncttt.model.norm import statistics


@contextmanager
def own_pass(model: Branched) -> Iterator[None]:
    """Let the encoder run inside the `with` block as it will at test time, and leave its running statistics alone.

    While training they must describe the images of the classifier, not rotated or recoloured ones. A classifier in
    training mode uses the batch's statistics; one in evaluation mode those that the method takes gradients with.
    """
    layers = model.batch_norms()
    training = any(layer.training for layer in layers)
    policy = "batch" if training else model.method.gradient_norm
    with statistics(layers, policy if layers else "source"):
        yield
