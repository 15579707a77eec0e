"""The networks: published parameter counts, torchvision's keys, shapes of the stages."""

import pytest
import torch

from ncttt import InputError, models
from ncttt.nets.preactivation import PreActivationBlock
from ncttt.nets.resnet9 import ConvBlock
from ncttt.nets.transformer import Attention, Stem

# Parameters with 1000 classes, as published with torchvision's and timm's models.
PUBLISHED = {"resnet18": 11_689_512, "resnet26": 15_995_176, "resnet34": 21_797_672, "resnet50": 25_557_032}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameter_counts_are_the_published_ones(name):
    net = models.build(name, num_classes=1000, image_size=224)
    assert sum(p.numel() for p in net.parameters()) == PUBLISHED[name]


def test_keys_are_torchvisions():
    keys = models.resnet50(num_classes=1000, image_size=224).state_dict().keys()
    expected = {
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.conv3.weight",
        "layer1.0.downsample.0.weight",
        "layer1.0.downsample.1.num_batches_tracked",
        "layer2.3.bn2.bias",
        "layer4.2.bn3.weight",
        "fc.weight",
        "fc.bias",
    }
    assert expected <= keys
    assert len(keys) == 320
    assert len(models.resnet18(num_classes=1000, image_size=224).state_dict()) == 122


@pytest.mark.parametrize(("size", "sides"), [(32, [32, 16, 8, 4]), (224, [56, 28, 14, 7])])
def test_stems_fit_their_image_size(size, sides):
    net = models.resnet18(num_classes=3, image_size=size)
    shapes = []
    for stage in (net.layer1, net.layer2, net.layer3, net.layer4):
        stage.register_forward_hook(lambda m, i, o: shapes.append(o.shape[-1]))
    assert net(torch.rand(1, 3, size, size)).shape == (1, 3)
    assert shapes == sides


def test_resnet20_has_its_published_size_and_remembers_how_it_was_made():
    net = models.resnet20(num_classes=10)
    assert sum(p.numel() for p in net.parameters()) == 269_722
    assert type(models.build(**net.architecture)) is type(net)
    assert net(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_resnet26gn_has_its_published_size_and_remembers_how_it_was_made():
    net = models.resnet26gn(num_classes=10)
    assert sum(p.numel() for p in net.parameters()) == 366_938
    assert {"conv1.weight", "layer2.0.bn1.bias", "layer3.3.conv2.weight", "bn.weight", "fc.bias"} <= {*net.state_dict()}
    assert type(models.build(**net.architecture)) is type(net)
    assert net(torch.rand(2, 3, 32, 32)).shape == (2, 10)
    stages = [(net.layer1, 16), (net.layer2, 16), (net.layer3, 32)]
    shapes = [tuple(stage(torch.rand(1, channels, 8, 8)).shape[1:]) for stage, channels in stages]
    assert shapes == [(16, 8, 8), (32, 4, 4), (64, 4, 4)]


def test_a_pre_activation_block_without_weights_averages_over_the_stride_and_appends_zero_channels():
    block = PreActivationBlock(8, 16, stride=2)
    torch.nn.init.zeros_(block.conv2.weight)
    features = torch.rand(1, 8, 4, 4)
    passed = block(features)
    torch.testing.assert_close(passed[0, 3, 1, 0], features[0, 3, 2:, :2].mean())
    assert passed.shape == (1, 16, 2, 2)
    assert not passed[:, 8:].any()


def test_the_small_network_has_four_stages_and_scales():
    net = models.small(num_classes=7, width=8)
    assert net(torch.rand(2, 3, 32, 32)).shape == (2, 7)
    assert net.layer4[1].block2[0].weight.shape == (64, 64, 3, 3)
    assert [name for name, _ in net.named_children()][:4] == ["layer1", "layer2", "layer3", "layer4"]
    assert sum(p.numel() for p in models.small().parameters()) == 927_010


def test_pooling_before_the_batch_norm_and_the_activation_changes_no_function():
    """BatchNorm with a positive scale and ReLU are monotone, so the maximum commutes with them."""
    block = ConvBlock(3, 4, pool=True).eval()
    images = torch.rand(2, 3, 8, 8)
    convolution, pool, norm, relu = block
    torch.testing.assert_close(block(images), pool(relu(norm(convolution(images)))))


def test_the_transformer_gives_tokens_and_remembers_how_it_was_made():
    net = models.vit(num_classes=7, image_size=24, patch_size=8, width=32, depth=3, heads=4)
    shapes = []
    for layer in (net.stem, *net.blocks, net.norm):
        layer.register_forward_hook(lambda m, i, o: shapes.append(tuple(o.shape)))
    assert net(torch.rand(2, 3, 24, 24)).shape == (2, 7)
    assert shapes == [(2, 9, 32)] * 5
    assert repr(models.build(**net.architecture)) == repr(net)
    assert sum(p.numel() for p in models.vit().parameters()) == 244_266
    with pytest.raises(InputError, match="positions for images of 24x24 pixels; found 32x32"):
        net(torch.rand(2, 3, 32, 32))


def test_attention_is_that_of_the_formula():
    """Head by head and token by token: softmax of scaled products of queries and keys, times the values."""
    torch.manual_seed(0)
    layer, tokens = Attention(6, heads=2), torch.randn(2, 4, 6)
    queries, keys, values = (part.view(2, 4, 2, 3) for part in layer.qkv(tokens).chunk(3, -1))
    expected = torch.empty(2, 4, 2, 3)
    for image in range(2):
        for head in range(2):
            for token in range(4):
                products = (keys[image, :, head] @ queries[image, token, head]) / 3**0.5
                expected[image, token, head] = products.softmax(0) @ values[image, :, head]
    torch.testing.assert_close(layer(tokens), layer.out(expected.flatten(2)))


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_token_of_the_stem_has_its_patch_in_the_middle(size):
    """Turned by 180 degrees, with kernels turned alike, an image gives the same tokens in reverse."""
    stem = Stem(size, 16)
    images = torch.rand(1, 3, 16, 16)
    tokens = stem(images)
    for layer in stem.layers:
        if hasattr(layer, "weight"):
            layer.weight.data = layer.weight.data.flip(2, 3)
    torch.testing.assert_close(stem(images.flip(2, 3)), tokens.flip(1))


@pytest.mark.parametrize(
    "wrong", [{"patch_size": 3}, {"depth": 0}, {"width": 66}, {"heads": 3}, {"image_size": 30}], ids=str
)
def test_sizes_of_the_transformer_that_do_not_fit(wrong):
    with pytest.raises(InputError, match="vit needs"):
        models.vit(**wrong)


def test_unknown_networks_are_named():
    with pytest.raises(InputError, match="did you mean 'resnet50'"):
        models.build("resnet5")
