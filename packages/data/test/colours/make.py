"""Writes noise images in several color modes, with colors and grays decoded by Pillow 9.4, for colours.test.ts:
`python3 make.py`."""

import base64
import io
import json
from pathlib import Path

from PIL import Image

here = Path(__file__).parent
columns, rows = 9, 7


def noise(mode, seed):
    state, values = seed, bytearray()
    for _ in range(columns * rows * len(mode)):
        state = (state * 1103515245 + 12345) % 2**31
        values.append(state >> 16 & 255)
    return Image.frombytes(mode, (columns, rows), bytes(values))


def encoded(image, format, **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


rgb, cmyk = noise("RGB", 1), noise("CMYK", 2)
opaque = Image.new("L", (columns, rows), 255)
files = {
    "png": encoded(rgb, "PNG"),
    "png with opaque alpha": encoded(Image.merge("RGBA", (*rgb.split(), opaque)), "PNG"),
    "png with palette": encoded(rgb.quantize(16), "PNG"),
    "gif": encoded(rgb.quantize(32), "GIF"),
    "webp": encoded(rgb, "WEBP", lossless=True),
    "grey png": encoded(noise("L", 3), "PNG"),
    "grey png with opaque alpha": encoded(Image.merge("LA", (noise("L", 4), opaque)), "PNG"),
    "png of one bit": encoded(noise("L", 5).convert("1"), "PNG"),
    "jpeg": encoded(rgb, "JPEG", quality=90, subsampling=0),
    "grey jpeg": encoded(noise("L", 6), "JPEG", quality=90),
    "cmyk jpeg": encoded(cmyk, "JPEG", quality=100),
    "cmyk tiff": encoded(cmyk, "TIFF"),
    "cmyk tiff, packed": encoded(cmyk, "TIFF", compression="tiff_lzw"),
    "tiff": encoded(rgb, "TIFF"),
}
results = []
for name, file in files.items():
    image = Image.open(io.BytesIO(file))
    for mode in ["RGB", "L"]:
        converted = image.convert(mode)
        for size in [(columns, rows), (5, 4)]:
            pixels = converted.resize(size, Image.Resampling.BILINEAR)
            results.append(
                {
                    "name": name,
                    "file": base64.b64encode(file).decode(),
                    "channels": len(mode),
                    "size": size[::-1],
                    "pixels": base64.b64encode(pixels.tobytes()).decode(),
                }
            )
(here / "expected.json").write_text(json.dumps(results, indent=0) + "\n")
