"""The public name of `ncttt.nets`: networks by name, as in `ncttt.models.resnet50(num_classes=12)`."""

from ncttt.nets import *  # noqa: F403
