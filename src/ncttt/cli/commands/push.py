"""`ncttt push`: put a model into a repository of the Hugging Face hub."""

from ncttt import zoo

EXAMPLE = "ncttt push runs/digits ada/digits-ncttt --license mit"
GROUP = "share"


def push(model: str, repository: str, *, license: str | None = None, private: bool = False) -> None:
    """Push a model, the record of its training and a model card to a repository of the Hugging Face hub.

    Log in by `hf auth login`, or set $HF_TOKEN; $HF_ENDPOINT names another hub.

    Args:
        model: Folder of a training or a checkpoint, or a zoo name.
        repository: Repository as user/name; it is made if there is none.
        license: Licence of the model for the header of the card, as in mit or apache-2.0; by default none is stated.
        private: Make a new repository private.
    """
    print(zoo.push(model, repository, license=license, private=private))
