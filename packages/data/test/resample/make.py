"""Writes a noise image resized by Pillow 9.4 with each filter, for resample.test.ts: `python3 make.py`."""

import base64
import json
from pathlib import Path

from PIL import Image

ROWS, COLUMNS = 23, 31

# Numerical Recipes' generator, also in the test
noise, pixels = 1, bytearray()
for _ in range(ROWS * COLUMNS * 3):
    noise = (noise * 1664525 + 1013904223) % 2**32
    pixels.append(noise >> 24)
image = Image.frombytes("RGB", (COLUMNS, ROWS), bytes(pixels))

cases = [
    ((8, 8), None),
    ((1, 1), None),
    ((23, 31), None),
    ((23, 9), None),
    ((7, 31), None),
    ((70, 62), None),
    ((46, 5), None),
    ((5, 93), (0, 0, 31, 23)),
    ((10, 10), (4, 0, 27, 23)),
    ((13, 7), (3.25, 1.5, 30.75, 22.125)),
    ((40, 40), (10.3, 11.7, 12.9, 14.2)),
]
results = []
for filter in Image.Resampling:
    for (rows, columns), box in cases:
        data = base64.b64encode(image.resize((columns, rows), filter, box).tobytes()).decode()
        results.append({"filter": filter.name.lower(), "size": [rows, columns], "box": box, "pixels": data})
(Path(__file__).parent / "expected.json").write_text(json.dumps(results, indent=0) + "\n")
