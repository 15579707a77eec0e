"""`ncttt pull`: fetch a model from a repository of the Hugging Face hub."""

from ncttt import zoo

EXAMPLE = "ncttt pull ada/digits-ncttt --out models/digits"
GROUP = "share"


def pull(repository: str, *, out: str | None = None) -> None:
    """Fetch a model from a repository of the Hugging Face hub and verify it.

    $HF_TOKEN, or `hf auth login`, opens private ones; $HF_ENDPOINT names another hub.

    Args:
        repository: Repository as user/name, or user/name@revision.
        out: Folder for the model; by default a folder of the repository's name in the current one.
    """
    print(zoo.pull(repository, out))
