"""Finds the entry of anybody's vision transformer.

After the entry the order of tokens must not matter: that is what lets some of them be left out. By that it is found,
because the order does matter before positions are added.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ncttt.base.errors import InputError
from ncttt.methods.ttt_mae.entry import Entry, replaced_input
from ncttt.methods.ttt_mae.patches import blanked
from ncttt.model.branched import Branched
from ncttt.model.modes import evaluating
from ncttt.model.taps import Tap

CANDIDATES = 24  # layers that are tried: an entry comes early, and each trial is a forward
OTHERS = 16  # tokens that may stand for no patch: a class token, registers
NEIGHBOURS = 4  # patches of a grid so small that a convolutional stem may look at all of them
SHAKEN = 0.05  # added to all weights while looking: positions, or blocks, that begin as zeros would hide what they do


def find_entry(model: Branched, wanted: str | None) -> Entry:
    """The entry of the classifier before its tap: the layer of that name, or the first one that will do."""
    look = _Look(model)
    if look.tokens.ndim != 3:
        raise InputError(
            f"TTT-MAE needs a transformer whose layers give patch tokens (B, N, C); layer {model.layer!r} of "
            f"{type(model.classifier).__name__} gives {tuple(look.tokens.shape)}"
        )
    if wanted is not None:
        entry = look.tried(wanted)
        if isinstance(entry, Entry):
            return entry
        raise InputError(f"entry={wanted!r} of {type(model.classifier).__name__} cannot be: {entry}")
    results = {}
    for name in look.candidates()[:CANDIDATES]:
        results[name] = look.tried(name)
        if isinstance(results[name], Entry):
            return results[name]
    tried = "".join(f"; {name!r}: {reason}" for name, reason in list(results.items())[:1])
    raise InputError(
        f"no layer of {type(model.classifier).__name__} up to {model.layer!r} takes patch tokens of which some can be "
        f"left out{tried}; name one by entry='...', such as the first block"
    )


class _Unfit(Exception):
    """Why a layer is no entry."""


class _Look:
    """The classifier up to its tap, on two random images and with shaken weights."""

    def __init__(self, model: Branched):
        assert model.input_shape is not None
        self.model, self.classifier = model, model.classifier
        generator = torch.Generator().manual_seed(0)
        self.images = torch.rand(2, *model.input_shape, generator=generator).to(model.mean)
        self.weights = {
            f"classifier.{name}": p.detach() + SHAKEN * torch.randn(p.shape, generator=generator).to(p)
            for name, p in self.classifier.named_parameters()
            if p.is_floating_point()
        }
        self.tokens = self._run(self.images)

    @torch.no_grad()
    def _run(self, images: Tensor) -> Tensor:
        """What the tapped layer gives."""
        layer = self.model.layers[0]
        with evaluating(self.model), Tap(self.classifier, [layer], stop=True) as tap:
            torch.func.functional_call(self.model, self.weights, (images,))
        return tap.outputs[layer]

    def candidates(self) -> list[str]:
        """The layers that are given tokens `(B, N, C)`, as many as the tap gives, in the order in which they run."""
        found: list[str] = []

        def hook(name: str) -> Any:
            def notice(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
                first = inputs[0] if inputs else None
                if isinstance(first, Tensor) and first.ndim == 3 and first.shape[:2] == self.tokens.shape[:2]:
                    found.append(name)

            return notice

        hooks = [part.register_forward_pre_hook(hook(name)) for name, part in self.classifier.named_modules() if name]
        try:
            self._run(self.images)
        finally:
            for each in hooks:
                each.remove()
        return list(dict.fromkeys(found))

    def tried(self, name: str) -> Entry | str:
        """The entry at that layer, or the reason why it is none."""
        try:
            return self._checked(name)
        except _Unfit as reason:
            return str(reason)

    def _checked(self, name: str) -> Entry:
        entering = self._entering(name, self.images)
        if entering.shape[:2] != self.tokens.shape[:2]:
            found, expected = (tuple(tokens.shape[:2]) for tokens in (entering, self.tokens))
            raise _Unfit(f"it is given {found[1]} tokens, and the tapped layer gives {expected[1]}")
        entry = self._grid(name, entering.shape[1])
        self._check_order(entry)
        self._check_own_patches(entry, entering)
        return entry

    def _entering(self, name: str, images: Tensor) -> Tensor:
        """The tokens that a layer is given."""
        seen: list[Tensor] = []

        def look(tokens: Tensor) -> Tensor:
            seen.append(tokens)
            return tokens

        with replaced_input(self.classifier, name, look):
            self._run(images)
        if not seen:
            raise _Unfit(f"it is given no tokens (B, N, C) before the tapped layer {self.model.layer!r} has run")
        return seen[0]

    def _grid(self, name: str, tokens: int) -> Entry:
        """As many patches as the tokens allow; what is left over stands for no patch."""
        height, width = self.images.shape[2:]
        sizes = (size for size in range(2, min(height, width) + 1) if height % size == 0 and width % size == 0)
        for size in sizes:
            patches = (height // size) * (width // size)
            if 1 < patches <= tokens <= patches + OTHERS:
                return Entry(name, tokens - patches, patches, size)
        raise _Unfit(f"{tokens} tokens are no grid of square patches of an image of {height}x{width}")

    def _check_order(self, entry: Entry) -> None:
        """Tokens in another order give the same in that order, and half of them give half as many."""
        count = len(self.images)
        backwards = torch.arange(entry.patches - 1, -1, -1, device=self.images.device).expand(count, -1)
        expected, given = entry.kept(self.tokens, backwards), self._run_on(entry, backwards)
        if given.shape != expected.shape or not _close(given, expected):
            raise _Unfit("what follows it depends on the order of tokens, so none can be left out")
        half = backwards[:, ::2]
        if self._run_on(entry, half).shape[1] != entry.others + half.shape[1]:
            raise _Unfit("what follows it does not give a token for each that it is given")

    def _run_on(self, entry: Entry, patches: Tensor) -> Tensor:
        try:
            with entry.keeping(self.classifier, patches):
                return self._run(self.images)
        except Exception as error:  # somebody's forward, which fails in any way it likes
            raise _Unfit(f"what follows it fails on other tokens: {str(error).splitlines()[0][:200]}") from None

    def _check_own_patches(self, entry: Entry, entering: Tensor) -> None:
        """A patch at the end of a row changes its own token, and the last patch does not change the first one's.

        So the grid is read row by row, after the other tokens, and tokens know nothing of each other yet. A stem that
        looks beyond its patch may change a neighbour more, but not ten times as much.
        """
        for patch in (self.images.shape[3] // entry.size - 1, entry.patches - 1):
            blank = blanked(self.images, torch.full((2, 1), patch).to(self.images.device), entry.size, self.model.mean)
            changes = (self._entering(entry.layer, blank) - entering).square().sum((0, 2))
            own, most = entry.others + patch, int(changes.argmax())
            if changes[own] < 0.1 * changes[most]:
                raise _Unfit(f"patch {patch} should be token {own}, but changes token {most}")
        if entry.patches > NEIGHBOURS and changes[entry.others] > 0:
            raise _Unfit("its tokens know of each other already, so the encoder would have seen hidden patches")


def _close(given: Tensor, expected: Tensor) -> bool:
    return bool((given - expected).abs().max() <= 1e-4 * expected.abs().max())
