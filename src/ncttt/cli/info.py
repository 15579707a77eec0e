"""`ncttt info`: what is installed and what this machine offers."""

import json as json_module
import platform

from ncttt import __version__


def info(*, json: bool = False) -> None:
    """Show versions, processors and what the package offers.

    Args:
        json: Print one JSON object, for scripts.
    """
    import torch

    from ncttt.methods import METHODS
    from ncttt.models import MODELS

    facts = {
        "ncttt": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.platform(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.device_count(),
        "methods": ", ".join(METHODS),
        "networks": ", ".join(MODELS),
    }
    if json:
        print(json_module.dumps(facts))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
