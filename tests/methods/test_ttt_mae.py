"""TTT-MAE: patches, masks, loss, where tokens enter anybody's transformer, health."""

import pytest
import torch
from torch import nn

import ncttt
from ncttt.base.parallel import Share, sharing
from ncttt.methods.ttt_mae.entry import Entry
from ncttt.methods.ttt_mae.looking import find_entry
from ncttt.methods.ttt_mae.patches import blanked, normalised, patchify, random_split
from ncttt.testing.cases import CLASSES, assert_same, attached, fingerprint, images
from ncttt.testing.contract import CHECKS, check_no_hooks_left
from reconstruction_checks import (
    ClassTokenViT,
    check_every_image_has_its_own_mask,
    check_hidden_pixels_are_not_seen,
    check_reconstruction_equals_a_slow_one,
    pixels_of,
)


def mae(net, layer="norm", **settings):
    return ncttt.attach(net, layer, ncttt.TTTMAE(**settings), images(2)).eval()


def test_patches_are_read_row_by_row():
    batch = images(2)
    patches = patchify(batch, 4)
    assert patches.shape == (2, 16, 48)
    for image, found in zip(batch, patches, strict=True):
        for patch in range(16):
            assert torch.equal(found[patch], pixels_of(image, patch))


def test_patches_of_an_image_that_is_not_square():
    patches = patchify(torch.arange(32.0).view(1, 1, 4, 8), 4)
    assert patches.shape == (1, 2, 16)
    assert patches[0, 1, :5].tolist() == [4, 5, 6, 7, 12]


def test_predicting_the_mean_of_a_patch_costs_one_and_a_flat_patch_nothing():
    patches = normalised(torch.cat([torch.rand(5, 48), torch.full((1, 48), 0.3)]))
    assert torch.allclose(patches[:5].square().mean(1), torch.ones(5), atol=1e-3)
    assert patches[5].abs().max() < 1e-3


def test_blanked_patches_have_the_colour_and_others_their_pixels():
    colour = torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1)
    found = patchify(blanked(images(1), torch.tensor([[2, 7]]), 4, colour), 4)
    expected = patchify(images(1), 4)
    expected[0, [2, 7]] = colour.flatten().repeat(16)
    assert torch.equal(found, expected)


def test_the_split_is_one():
    visible, hidden = random_split(images(50), 16, 12)
    assert (visible.shape, hidden.shape) == ((50, 4), (50, 12))
    assert torch.equal(torch.cat([visible, hidden], 1).sort(1).values, torch.arange(16).expand(50, -1))


def test_two_processes_hide_what_one_would():
    def hidden(rank, world, count):
        with sharing(Share(torch.Generator().manual_seed(3), rank, world)):
            return random_split(images(count), 16, 12)[1]

    whole, parts = hidden(0, 1, 6), [hidden(rank, 2, 3) for rank in range(2)]
    assert torch.equal(torch.stack(parts, 1).flatten(0, 1), whole)


def test_the_loss_is_a_slow_one():
    check_reconstruction_equals_a_slow_one()


def test_masks_are_those_of_each_image():
    check_every_image_has_its_own_mask()


def test_a_convolutional_stem_does_not_see_hidden_pixels():
    check_hidden_pixels_are_not_seen()


def test_the_encoder_runs_on_a_sequence_gathered_by_hand():
    model = mae(ncttt.models.vit(num_classes=CLASSES, image_size=16, width=32, depth=2, heads=1))
    net, keep = model.classifier, torch.tensor([[3, 0, 9], [15, 2, 4]])
    with model.branch.entry.keeping(net, keep):
        found = model.features(images(2))
    tokens = net.stem(images(2)) + net.position
    gathered = torch.stack([tokens[0, [3, 0, 9]], tokens[1, [15, 2, 4]]])
    assert torch.allclose(found, net.norm(net.blocks[1](net.blocks[0](gathered))), atol=1e-6)
    assert model.features(images(2)).shape == (2, 16, 32)


@pytest.mark.parametrize(
    ("share", "hidden"), [(0.75, 12), (0.5, 8), (0.01, 1), (0.99, 15)], ids=lambda value: str(value)
)
def test_the_share_of_hidden_patches(share, hidden):
    model = attached("vit", ncttt.TTTMAE(mask_ratio=share))
    predicted, target = model.method.reconstructed(model, images(2))
    assert predicted.shape == target.shape == (2, hidden, 48)


def test_zero_weights_do_not_hide_where_positions_are_added():
    """The positions of this transformer begin as zeros, so that only shaken weights tell what comes before them."""
    model = mae(ClassTokenViT())
    assert model.branch.entry == Entry("pos_drop", others=1, patches=16, size=4)
    assert mae(ClassTokenViT(), "blocks").branch.entry.layer == "pos_drop"


def test_other_tokens_are_always_kept():
    model = mae(ClassTokenViT())
    nn.init.ones_(model.classifier.cls_token)
    seen = []
    hook = model.classifier.blocks.register_forward_pre_hook(lambda layer, inputs: seen.append(inputs[0]))
    model.method.adaptation_loss(model, images(3))
    hook.remove()
    assert seen[0].shape == (3, 5, 16)
    assert torch.equal(seen[0][:, 0], torch.ones(3, 16))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_the_contract_holds_with_a_class_token(check):
    class Case:
        method = ncttt.TTTMAE(masks=16, optimizer="adam")

        def __init__(self):
            torch.manual_seed(0)
            self.model = ncttt.attach(ClassTokenViT(), "norm", self.method, images(2), (0.5,) * 3, (0.2,) * 3).eval()
            self.model.calibrate([images(8, seed=9)])

        def adapter(self, **settings):
            return ncttt.Adapter(self.model, **{"steps": 3, "lr": 1e-3, **settings})

    check(Case())


def test_an_entry_can_be_named():
    net = ClassTokenViT()
    assert mae(net, entry="blocks.0").branch.entry.layer == "blocks.0"
    with pytest.raises(ncttt.InputError, match="no layer 'block'"):
        mae(net, entry="block")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("patch_embed", r"it is given no tokens \(B, N, C\) before the tapped layer 'norm' has run"),
        ("head", "it is given no tokens"),
        ("patch_norm", "it is given 16 tokens, and the tapped layer gives 17"),
        ("blocks.0.linear1", "what follows it"),
        ("blocks.1", "its tokens know of each other already"),
    ],
)
def test_an_entry_that_cannot_be_says_why(entry, reason):
    with pytest.raises(ncttt.InputError, match=f"entry='{entry}' of ClassTokenViT cannot be: {reason}"):
        mae(ClassTokenViT(), entry=entry)


@pytest.mark.parametrize("classifier", ["resnet", "vgg", "branching"])
def test_convolutional_networks_are_refused(classifier):
    with pytest.raises(ncttt.InputError, match=r"needs a transformer whose layers give patch tokens .* gives \(2, "):
        attached(classifier, ncttt.TTTMAE())


def test_tokens_after_the_patches_are_refused():
    with pytest.raises(ncttt.InputError, match="patch 3 should be token 4, but changes token 3"):
        mae(ClassTokenViT(last=True), entry="pos_drop")


class Ordered(ClassTokenViT):
    """Adds positions once more after each of its blocks, as relative ones would."""

    def forward(self, pixels):
        tokens = self.patch_norm(self.patch_embed(pixels).flatten(2).transpose(1, 2))
        for block in self.blocks:
            tokens = block(tokens) + self.pos_embed[:, 1:]
        return self.head(self.norm(tokens).mean(1))


class Counted(ClassTokenViT):
    """Runs on any number of tokens, but tells them apart, a little, by their places in the row."""

    def forward(self, pixels):
        tokens = self.patch_norm(self.patch_embed(pixels).flatten(2).transpose(1, 2))
        for block in self.blocks:
            places = torch.arange(tokens.shape[1]).sin().view(1, -1, 1)
            tokens = block(tokens) + 0.02 * places * torch.linspace(-1, 1, tokens.shape[2])
        return self.head(self.norm(tokens).mean(1))


def test_an_encoder_for_which_the_order_of_tokens_matters_is_refused():
    with pytest.raises(ncttt.InputError, match="'patch_norm': what follows it depends on the order of tokens"):
        mae(Counted())


def test_an_encoder_that_needs_all_tokens_is_refused():
    with pytest.raises(
        ncttt.InputError, match=r"no layer of Ordered .* can be left out; 'patch_norm': what follows it"
    ):
        mae(Ordered())


class Pairs(ClassTokenViT):
    """Tokens of half a patch: twice as many as a grid has."""

    def forward(self, pixels):
        tokens = self.patch_embed(pixels).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(torch.cat([tokens, tokens, tokens], 1))).mean(1))


def test_tokens_that_are_no_grid_are_refused():
    with pytest.raises(ncttt.InputError, match="48 tokens are no grid of square patches of an image of 16x16"):
        mae(Pairs())


def test_several_layers_are_refused():
    with pytest.raises(ncttt.InputError, match="follows one layer; found 2"):
        mae(ClassTokenViT(), ["blocks", "norm"])


def test_images_of_another_size_are_refused():
    model = attached("vit", ncttt.TTTMAE())
    with pytest.raises(ncttt.InputError, match=r"images \(3, 16, 16\); found \(3, 20, 20\)"):
        model.method.adaptation_loss(model, images(2, size=20))


def test_looking_for_the_entry_leaves_no_trace():
    net = ClassTokenViT()
    model = ncttt.attach(net, "norm", ncttt.Source(), images(2)).train()
    before, random = fingerprint(model), torch.get_rng_state()
    find_entry(model, None)
    assert_same(before, fingerprint(model))
    assert torch.equal(torch.get_rng_state(), random)


def test_a_pass_that_fails_leaves_no_hook():
    class Case:
        model = mae(ClassTokenViT())

        def adapter(self):
            return ncttt.Adapter(self.model, steps=1, lr=1e-3)

    check_no_hooks_left(Case())


def test_more_masks_are_more_views_of_the_same_batch():
    """Their mean loss varies less, and is the same on average."""
    one, many = (attached("vit", ncttt.TTTMAE(masks=masks)) for masks in (1, 16))
    torch.manual_seed(0)
    losses = [
        torch.stack([model.method.adaptation_loss(model, images(1)).loss.detach() for _ in range(40)])
        for model in (one, many)
    ]
    assert losses[1].std() < 0.5 * losses[0].std()
    assert losses[1].mean() == pytest.approx(losses[0].mean().item(), rel=0.05)


def test_health_knows_a_decoder_that_predicts_the_mean():
    method = ncttt.TTTMAE()
    model = attached("vit", method)
    nn.init.zeros_(model.branch.pixels.weight)
    nn.init.zeros_(model.branch.pixels.bias)
    logits, features = model.forward_with_features(images(4))
    health = {name: value.item() for name, value in method.health(model, images(4), features, logits).items()}
    assert health["variance_explained"] == pytest.approx(0, abs=1e-6)
    assert "explains 0.0% of hidden patches" in method.warnings(health)[0]
    assert method.warnings({"variance_explained": 0.3}) == []


def test_a_decoder_learns_stripes():
    """Images of one slope each, which a few visible patches tell, are explained after a short training."""
    torch.manual_seed(0)
    ramp = torch.linspace(0, 1, 16)
    down, right = ramp.view(1, 16, 1).expand(3, 16, 16), ramp.view(1, 1, 16).expand(3, 16, 16)
    batch = torch.stack([down, right, 1 - down, 1 - right]).repeat(8, 1, 1, 1)
    model = attached("vit", ncttt.TTTMAE())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(120):
        logits, features = model.forward_with_features(batch)
        optimizer.zero_grad()
        model.method.training_loss(model, batch, features, logits).backward()
        optimizer.step()
    assert model.method.health(model, batch, features, logits)["variance_explained"] > 0.9


@pytest.mark.parametrize(
    "wrong",
    [{"mask_ratio": 0.0}, {"mask_ratio": 1.0}, {"masks": 0}, {"decoder_width": 48}, {"decoder_depth": 0}],
)
def test_wrong_settings(wrong):
    with pytest.raises(ncttt.InputError, match=next(iter(wrong))):
        ncttt.TTTMAE(**wrong)
