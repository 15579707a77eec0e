"""Published hashes of the files of each set, and the check of files on disk against such a table."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

CIFAR10 = {
    "data_batch_1.bin": "md5:5dd7e06a14cb22eb9f671a540d1b7c25",
    "data_batch_2.bin": "md5:5ea93a67294ea407fff1d09f752e9692",
    "data_batch_3.bin": "md5:942cd6a4bcdd0dd3c604fbe906cb4421",
    "data_batch_4.bin": "md5:ae636b3ba5c66a11e91e8cb52e771fcb",
    "data_batch_5.bin": "md5:53f37980c15c3d472c316c40844f3f0d",
    "test_batch.bin": "md5:803d5f7f4d78ea53de84dbe85f74fb6d",
}
CIFAR10_PYTHON = {
    "data_batch_1": "md5:c99cafc152244af753f735de768cd75f",
    "data_batch_2": "md5:d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "md5:54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "md5:634d18415352ddfa80567beed471001a",
    "data_batch_5": "md5:482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "md5:40351d587109b95175f43aff81a1287e",
}
CIFAR100 = {
    "train": "md5:16019d7e3df5f24257cddd939b257f8d",
    "test": "md5:f0ef6b0ae62326f3e7ffdfab6717acfc",
    "meta": "md5:7973b15100ade9c7d40fb424638fde48",
}
CIFAR10_1_V4 = {
    "cifar10.1_v4_data.npy": "sha256:5aaedc268df8f4cffca2ac0cf9e608ae1897a8cddb630c7a850a2ea8f6558e75",
    "cifar10.1_v4_labels.npy": "sha256:1f9544300ded199539b6662364ce7fe6c2e1ea9f87408f06db4b1a6184cffb18",
}
CIFAR10_1_V6 = {
    "cifar10.1_v6_data.npy": "sha256:2997188e5816f5bd545dc77771b6227828c28146049fcecf3fa10775474cacc6",
    "cifar10.1_v6_labels.npy": "sha256:ae40beda001693674edc94d925ee8268cfe68905f8f9aff800c8dcdfcd6c9448",
}
CIFAR10_C = {
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
CIFAR100_C = {
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


def file_hash(path: Path, algorithm: str = "md5") -> str:
    """The hash of a file as `algorithm:hexdigits`, read in pieces."""
    digest = hashlib.new(algorithm)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return f"{algorithm}:{digest.hexdigest()}"


def mismatches(folder: Path, hashes: Mapping[str, str]) -> dict[str, str]:
    """What is wrong with the files of `folder` by name: missing, or another hash; empty when all agree.

    >>> mismatches(Path("nowhere"), {"a.bin": "md5:0"})
    {'a.bin': 'missing'}
    """
    wrong = {}
    for name, expected in hashes.items():
        path = folder / name
        if not path.is_file():
            wrong[name] = "missing"
        elif (found := file_hash(path, expected.partition(":")[0])) != expected:
            wrong[name] = f"expected {expected}, found {found}"
    return wrong
