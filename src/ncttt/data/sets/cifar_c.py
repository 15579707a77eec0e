"""CIFAR-10-C and CIFAR-100-C: the test images under 19 corruptions, as published or as `ncttt data corrupt` makes them.

The hashes of the files are those that several public readers of these sets agree on; Zenodo publishes those of the
archives.
"""

from pathlib import Path
from typing import Any

from ncttt.data.files.arrays import CIFAR_SHAPE, MAKING, check_made, made_whole, read_block, unfinished
from ncttt.data.files.imageset import ImageSet
from ncttt.data.sets import cifar10, cifar100
from ncttt.data.sets.base import DataSet, Download, Findings

ZENODO = "https://zenodo.org/records/"


class CifarC(DataSet):
    """One corruption at one severity: its block of `<corruption>.npy` (5N, 32, 32, 3), memory-mapped."""

    clean: str
    splits = ("test",)
    stores_corruptions = True

    def read(
        self, root: Path, split: str, corruption: str | None = None, severity: int | None = None, **options: Any
    ) -> ImageSet:
        folder = self.where(root)
        images, labels = read_block(folder, corruption, severity, CIFAR_SHAPE)
        return ImageSet(images, labels, self.classes, name=f"{folder.name} {corruption} {severity}")

    def present(self, root: Path) -> bool:
        return made_whole(self.where(root)) if self._made(root) else super().present(root)

    def unfinished(self, root: Path) -> bool:
        return bool(unfinished(self.where(root)))

    def check(self, root: Path) -> Findings:
        return check_made(self.where(root)) if self._made(root) else super().check(root)

    def advice(self, root: Path) -> str:
        return f"{super().advice(root)} or make it with `ncttt data corrupt {self.clean} --out {self.where(root)}`"

    def _made(self, root: Path) -> bool:
        return (self.where(root) / MAKING).is_file()


class Cifar10C(CifarC):
    """CIFAR-10-C."""

    name = "cifar10-c"
    place = 4
    title = "CIFAR-10-C: the CIFAR-10 test images under 19 corruptions at 5 severities"
    clean = "cifar10"
    classes = cifar10.CLASSES
    folder = "CIFAR-10-C"
    downloads = (Download(ZENODO + "2535967/files/CIFAR-10-C.tar", "md5:56bf5dcef84df0e2308c6dcbcbbd8499"),)
    hashes = {  # noqa: RUF012 - a fact, never changed
        "brightness.npy": "md5:0a81ef75e0b523c3383219c330a85d48",
        "contrast.npy": "md5:3c8262171c51307f916c30a3308235a8",
        "defocus_blur.npy": "md5:7d1322666342a0702b1957e92f6254bc",
        "elastic_transform.npy": "md5:9421657c6cd452429cf6ce96cc412b5f",
        "fog.npy": "md5:7b397314b5670f825465fbcd1f6e9ccd",
        "frost.npy": "md5:31f6ab3bce1d9934abfb0cc13656f141",
        "gaussian_blur.npy": "md5:c33370155bc9b055fb4a89113d3c559d",
        "gaussian_noise.npy": "md5:ecaf8b9a2399ffeda7680934c33405fd",
        "glass_blur.npy": "md5:7361fb4019269e02dbf6925f083e8629",
        "impulse_noise.npy": "md5:2090e01c83519ec51427e65116af6b1a",
        "jpeg_compression.npy": "md5:2b9cc4c864e0193bb64db8d7728f8187",
        "labels.npy": "md5:c439b113295ed5254878798ffe28fd54",
        "motion_blur.npy": "md5:fffa5f852ff7ad299cfe8a7643f090f4",
        "pixelate.npy": "md5:0f14f7e2db14288304e1de10df16832f",
        "saturate.npy": "md5:1cfae0964219c5102abbb883e538cc56",
        "shot_noise.npy": "md5:3a7239bb118894f013d9bf1984be7f11",
        "snow.npy": "md5:bb238de8555123da9c282dea23bd6e55",
        "spatter.npy": "md5:8a5a3903a7f8f65b59501a6093b4311e",
        "speckle_noise.npy": "md5:ef00b87611792b00df09c0b0237a1e30",
        "zoom_blur.npy": "md5:6ea8e63f1c5cdee1517533840641641b",
    }
    bytes = 2_918_471_680


class Cifar100C(CifarC):
    """CIFAR-100-C."""

    name = "cifar100-c"
    place = 5
    title = "CIFAR-100-C: the CIFAR-100 test images under 19 corruptions at 5 severities"
    clean = "cifar100"
    classes = cifar100.CLASSES
    folder = "CIFAR-100-C"
    downloads = (Download(ZENODO + "3555552/files/CIFAR-100-C.tar", "md5:11f0ed0f1191edbf9fa23466ae6021d3"),)
    hashes = {  # noqa: RUF012 - a fact, never changed
        "brightness.npy": "md5:f22d7195aecd6abb541e27fca230c171",
        "contrast.npy": "md5:322bb385f1d05154ee197ca16535f71e",
        "defocus_blur.npy": "md5:d923e3d9c585a27f0956e2f2ad832564",
        "elastic_transform.npy": "md5:a0792bd6581f6810878be71acedfc65a",
        "fog.npy": "md5:4efc7ebd5e82b028bdbe13048e3ea564",
        "frost.npy": "md5:3a39c6823bdfaa0bf8b12fe7004b8117",
        "gaussian_blur.npy": "md5:5204ba0d557839772ef5a4196a052c3e",
        "gaussian_noise.npy": "md5:ecc4d366eac432bdf25c024086f5e97d",
        "glass_blur.npy": "md5:0bf384f38e5ccbf8dd479d9059b913e1",
        "impulse_noise.npy": "md5:3b3c210ddfa0b5cb918ff4537a429fef",
        "jpeg_compression.npy": "md5:c851b7f1324e1d2ffddeb76920576d11",
        "labels.npy": "md5:bb4026e9ce52996b95f439544568cdb2",
        "motion_blur.npy": "md5:732a7e2e54152ff97c742d4c388c5516",
        "pixelate.npy": "md5:96c00c60f144539e14cffb02ddbd0640",
        "saturate.npy": "md5:c0697e9fdd646916a61e9c312c77bf6b",
        "shot_noise.npy": "md5:b0a1fa6e1e465a747c1b204b1914048a",
        "snow.npy": "md5:0237be164583af146b7b144e73b43465",
        "spatter.npy": "md5:12ccf41d62564d36e1f6a6ada5022728",
        "speckle_noise.npy": "md5:e3f215b1a0f9fd9fd6f0d1cf94a7ce99",
        "zoom_blur.npy": "md5:0204613400c034a81c4830d5df81cb82",
    }
    bytes = 2_918_473_216
