"""PyTorch's DataLoader on a folder of JPEGs, with SKEIN_BENCH_WORKERS worker processes.

Prints a line of JSON per epoch, as defined in loader-protocol.ts.

With SKEIN_BENCH_DRAFT=1 JPEGs are decoded at the smallest sufficient scale that JPEG offers before they are resized.
libvips always does this, Pillow only on request, and torchvision's ImageFolder does not request it.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

IS_DRAFT = os.environ.get("SKEIN_BENCH_DRAFT") == "1"
WORKERS = int(os.environ["SKEIN_BENCH_WORKERS"])


class Folder(Dataset):
    def __init__(self, folder, side):
        classes = sorted(path for path in Path(folder).iterdir() if path.is_dir())
        self.samples = [(path, label) for label, each in enumerate(classes) for path in sorted(each.iterdir())]
        self.side = side

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        with Image.open(path) as image:
            if IS_DRAFT:
                image.draft("RGB", (self.side, self.side))
            pixels = image.convert("RGB").resize((self.side, self.side), Image.Resampling.BILINEAR)
        return torch.from_numpy(numpy.array(pixels)), label


def main():
    folder, epochs, side, batch_size = sys.argv[1], *map(int, sys.argv[2:])
    torch.set_num_threads(1)
    loader = DataLoader(
        Folder(Path(folder) / "train", side),
        batch_size=batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=WORKERS,
        persistent_workers=True,
    )
    for _ in range(epochs):
        began = time.perf_counter()
        pixels = labels = images = 0
        for inputs, targets in loader:
            pixels += int(inputs.sum(dtype=torch.int64))
            labels += int(targets.sum())
            images += len(targets)
        seconds = time.perf_counter() - began
        mean = pixels / (images * side * side * 3)
        print(json.dumps({"seconds": seconds, "images": images, "meanPixel": mean, "labels": labels}), flush=True)


if __name__ == "__main__":
    main()
