"""A calibration on disk: one safetensors file whose header says for which weights it was made."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ncttt.base.errors import InputError
from ncttt.base.files import replace_file
from ncttt.model.branched import Branched
from ncttt.monitor.calibration import Calibration

FORMAT = "ncttt monitor 1"


def write_calibration(file: Path, calibration: Calibration, model: Branched) -> None:
    """Write a calibration of a model; a kill leaves the old file or the new one."""
    tensors = {name: tensor.contiguous() for name, tensor in calibration.tensors().items()}
    about = {"layers": calibration.layers, "has_branch": calibration.has_branch, "weights": weights_digest(model)}
    replace_file(file, save(tensors, {"format": FORMAT, "about": json.dumps(about)}))


def read_calibration(file: Path, model: Branched) -> Calibration:
    """Read a calibration; an `InputError` unless it is one of this very model."""
    if not file.is_file():
        raise InputError(f"no calibration of a monitor at {file}")
    try:
        with safe_open(str(file), framework="pt") as stored:
            header, tensors = stored.metadata() or {}, {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise InputError(f"{file} is no safetensors file: {error}") from None
    empty = Calibration(*[torch.zeros(0)] * 10, layers=(), has_branch=False)
    if header.get("format") != FORMAT or tensors.keys() != empty.tensors().keys():
        raise InputError(f"{file} holds no calibration of a monitor (format {FORMAT!r})")
    about = json.loads(header["about"])
    if about["weights"] != weights_digest(model):
        raise InputError(f"{file} was calibrated for other weights than this model's; calibrate the monitor again")
    return replace(empty, **tensors, layers=tuple(about["layers"]), has_branch=about["has_branch"])


def weights_digest(model: Branched) -> str:
    """A digest of what the numbers of an image depend on: all weights, and the buffers of the classifier."""
    digest = hashlib.sha256()
    tensors: dict[str, Tensor] = {**dict(model.named_parameters()), **dict(model.classifier.named_buffers())}
    for name, tensor in sorted((tensors | {"mean": model.mean, "std": model.std}).items()):
        values = tensor.detach().cpu().contiguous().flatten()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(values.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
