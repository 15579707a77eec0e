"""`ncttt data check`: verify what is on disk."""

import json as json_module

from ncttt import data
from ncttt.base.errors import InputError

EXAMPLE = "ncttt data check cifar10"


def check(name: str, *, root: str | None = None, json: bool = False) -> None:
    """Verify what is on disk by checksums, shapes and counts; decodes every file of an image folder.

    Args:
        name: Name of a set, or path of an image folder.
        root: Folder of the data sets; else $NCTTT_DATA, else the user's cache folder.
        json: Print one JSON object, for scripts.
    """
    findings = data.check(name, root)
    wrong = [what for what, state in findings.items() if state != "ok"]
    if json:
        print(json_module.dumps({"name": name, "ok": not wrong, "findings": findings}))
    else:
        for what, state in findings.items():
            print(f"{what}: {state}")
    if wrong:
        raise InputError(f"{name}: {len(wrong)} of {len(findings)} checks failed")
