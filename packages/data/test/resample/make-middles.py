"""Writes the images of ../images decoded, resized and center-cropped with Pillow 9.4, for middles.test.ts:
`python3 make-middles.py`. Sides and centers follow Hugging Face's image processors: the longer side is rounded down,
and so is half of the margin."""

import base64
import json
from pathlib import Path

from PIL import Image, ImageOps

here = Path(__file__).parent
images = ["plain.png", "plain.jpg", "turned.jpg", "grey.jpg"]


def shorter(image, edge):
    longer = int(edge * max(image.size) / min(image.size))
    return (edge, longer) if image.width <= image.height else (longer, edge)


results = []
for name in images:
    image = ImageOps.exif_transpose(Image.open(here / "../images" / name)).convert("RGB")
    for resize, size, filter in [
        (17, (13, 11), "BICUBIC"),
        (9, (9, 9), "BILINEAR"),
        ((16, 21), (14, 12), "LANCZOS"),
        ((12, 10), (12, 10), "NEAREST"),
    ]:
        wide, high = shorter(image, resize) if isinstance(resize, int) else resize[::-1]
        whole = image.resize((wide, high), Image.Resampling[filter])
        top, left = (high - size[0]) // 2, (wide - size[1]) // 2
        middle = whole.crop((left, top, left + size[1], top + size[0]))
        pixels = base64.b64encode(middle.tobytes()).decode()
        results.append(
            {"image": name, "resize": resize, "size": size, "resample": filter.lower(), "pixels": pixels}
        )
(here / "middles.json").write_text(json.dumps(results, indent=0) + "\n")
