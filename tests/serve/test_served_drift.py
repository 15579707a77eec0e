"""A drifting stream through HTTP, one image a request: what the library does with it, and that it helps."""

import numpy as np
import torch
from service import MODEL, client_of, digits, labels, predict

import ncttt

IMAGES = {"clean": 64, "contrast": 300}
SETTINGS = {"steps": 2, "lr": 1e-3}


def test_a_stream_drifts_and_comes_back(tmp_path):
    model = ncttt.load(MODEL)
    method = ncttt.NCTTT(**{**vars(model.method), "gather": 64})
    adapter = ncttt.Adapter(model, method, protocol="online", stop="source", on_collapse="reset", **SETTINGS)
    right, outcomes = [], []
    with client_of(tmp_path, **SETTINGS) as client:
        for corruption in ("clean", "contrast", "clean"):
            phase, words = [], []
            for image, label in zip(digits(corruption), labels()[: IMAGES[corruption]].tolist(), strict=False):
                answer = predict(client, image[None], "camera")
                (row,) = answer["predictions"]
                tensor = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float().div(255)
                assert row["label"] == str(adapter(tensor).argmax().item())
                phase.append((row["label"] == str(label), row["source_label"] == str(label)))
                words.append(answer["outcome"])
            right.append(np.mean(phase[len(phase) // 2 :] if corruption == "contrast" else phase, axis=0))
            outcomes.append(words)
    (clean, clean_source), (shifted, shifted_source), _ = right
    assert clean == clean_source
    assert shifted > shifted_source + 0.1
    assert set(outcomes[0]) == {"left to source"}
    assert {"adapted", "too small a batch"} <= set(outcomes[1])
    assert outcomes[2][-1] == "left to source"
