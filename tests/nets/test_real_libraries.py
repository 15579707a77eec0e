"""timm, torchvision and transformers themselves, each where it can be imported; nothing is downloaded."""

from importlib import import_module

import pytest
import torch

import ncttt
from ncttt import InputError, models
from ncttt.model.last_stage import last_stage
from ncttt.testing.cases import CLASSES, images

TINY_VIT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
TINY_VIT |= {"image_size": 32, "patch_size": 8}
TINY_RESNET = {"embedding_size": 4, "hidden_sizes": [4, 8, 8, 16], "depths": [1, 1, 1, 1], "layer_type": "basic"}
# Size of the images, the last stage, settings.
NETWORKS = {
    "hf:vit": (32, "vit.layernorm", TINY_VIT),
    "hf:deit": (32, "deit.layernorm", TINY_VIT),
    "hf:resnet": (64, "resnet.encoder.stages.3", TINY_RESNET),
    "hf:convnext": (64, "convnext.encoder.stages.3", {"hidden_sizes": [4, 8, 8, 16], "depths": [1, 1, 1, 1]}),
    "timm:resnet18": (64, "layer4", {}),
    "timm:convnext_atto": (64, "stages.3", {}),
    "timm:vit_tiny_patch16_224": (32, "norm", {"img_size": 32, "patch_size": 8, "depth": 2}),
    "timm:efficientnet_b0": (64, "bn2", {}),
    "timm:mobilenetv3_small_050": (64, "blocks.5", {}),
    "torchvision:resnet18": (64, "layer4", {}),
    "torchvision:mobilenet_v2": (64, "features.18", {}),
}


def library(name: str) -> None:
    module = {"hf": "transformers"}.get(name.partition(":")[0], name.partition(":")[0])
    try:
        import_module(module)
    except Exception as error:  # torchvision raises a RuntimeError beside a torch of another build
        pytest.skip(f"{module} cannot be imported: {error}")


@pytest.mark.parametrize("name", NETWORKS)
def test_a_checkpoint_is_rebuilt_by_name_and_adapts_at_its_last_stage(name, tmp_path):
    library(name)
    size, layer, settings = NETWORKS[name]
    net = models.build(name, num_classes=CLASSES, **settings)
    model = ncttt.attach(net, "auto", ncttt.NCTTT(hidden=8, channels=8), images(2, size=size)).eval()
    assert model.layer == layer
    ncttt.save(model, tmp_path)
    again = ncttt.load(tmp_path)
    assert again.layer == layer
    assert again(images(2, size=size)).shape == (2, CLASSES)
    assert torch.equal(again(images(2, size=size)), model(images(2, size=size)))
    adapted = ncttt.Adapter(again, steps=1)(images(4, size=size))
    assert adapted.shape == (4, CLASSES)
    assert torch.isfinite(adapted).all()


def test_a_transformers_folder_is_recorded_by_type_and_settings(tmp_path, monkeypatch):
    library("hf:")
    monkeypatch.chdir(tmp_path)
    net = models.build("hf:vit", num_classes=CLASSES, **TINY_VIT)
    net.save_pretrained("mine")
    drawn = models.build("hf:./mine")
    assert net.architecture == {"name": "hf:vit", "num_classes": CLASSES, **TINY_VIT}
    assert net.architecture.items() <= drawn.architecture.items()  # and what transformers derives from them
    assert models.build(**drawn.architecture).architecture == drawn.architecture
    taken = models.build("hf:./mine", pretrained=True)
    key = "vit.layernorm.weight"
    assert all(torch.equal(tensor, taken.state_dict()[name]) for name, tensor in net.state_dict().items())
    other = models.build("hf:./mine", pretrained=True, num_classes=7)
    assert other.architecture == drawn.architecture | {"num_classes": 7}
    assert torch.equal(other.state_dict()[key], net.state_dict()[key])
    assert other(images(2, size=32)).logits.shape == (2, 7)


def test_code_of_a_folder_is_not_run(tmp_path, monkeypatch):
    library("hf:")
    monkeypatch.chdir(tmp_path)
    models.build("hf:vit", **TINY_VIT).save_pretrained("mine")
    config = tmp_path / "mine/config.json"
    automatic = '"auto_map": {"AutoConfig": "evil.Config", "AutoModelForImageClassification": "evil.Net"}, '
    config.write_text(config.read_text().replace("{", "{" + automatic, 1))
    (tmp_path / "mine/evil.py").write_text("open('ran', 'w')")
    for pretrained in (False, True):
        assert type(models.build("hf:./mine", pretrained=pretrained)).__name__ == "ViTForImageClassification"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("hf:vitt", {}, "no image classifier of type 'vitt'; did you mean 'vit'"),
        ("hf:vit", {"hiden_size": 8}, "no setting 'hiden_size'; did you mean 'hidden_size'"),
        ("hf:vit", {"attn_implementation": "somebody/kernel"}, "no setting 'attn_implementation'"),
        ("hf:vit", {"auto_map": "evil.Net"}, "no setting 'auto_map'"),
        ("hf:vit", {"pretrained": True}, "a type without weights"),
        ("hf:timm_wrapper", {}, "no image classifier of type 'timm_wrapper'"),
        ("hf:user/name", {}, "no folder 'user/name'; a repository of that name is fetched with pretrained=True"),
        ("timm:resnet1", {}, "timm has no network 'resnet1'; did you mean 'resnet18'"),
        ("timm:hf-hub:timm/resnet18", {}, "timm has no network 'hf-hub:timm/resnet18'"),
        ("timm:resnet18", {"num_clases": 3}, "timm cannot make 'timm:resnet18' .*num_clases"),
        ("torchvision:maskrcnn_resnet50_fpn", {}, "torchvision has no classifier"),
    ],
)
def test_mistakes_are_named(name, settings, message):
    library(name)
    with pytest.raises(InputError, match=message):
        models.build(name, **settings)


def test_maps_of_rows_are_refused():
    library("timm:")
    with pytest.raises(InputError, match="finds no feature map"):
        last_stage(models.build("timm:swin_tiny_patch4_window7_224"), images(1, size=224))
