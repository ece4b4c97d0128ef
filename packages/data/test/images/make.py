"""Writes small images of common kinds with Pillow 9.4: `python3 make.py`. Left half red, right half blue."""

from pathlib import Path

from PIL import Image

here = Path(__file__).parent
rows, columns = 16, 24


def halves(mode, left, right):
    image = Image.new(mode, (columns, rows), right)
    image.paste(left, (0, 0, columns // 2, rows))
    return image


rgb = halves("RGB", (255, 0, 0), (0, 0, 255))
rgb.save(here / "plain.jpg", quality=95, subsampling=0)
rgb.save(here / "plain.png")
rgb.save(here / "plain.webp", lossless=True)
rgb.save(here / "palette.gif")
rgb.convert("CMYK").save(here / "cmyk.jpg", quality=95)
rgb.save(here / "palette-animated.gif", save_all=True, append_images=[Image.new("RGB", (columns, rows), (0, 255, 0))])
halves("RGBA", (255, 0, 0, 255), (0, 0, 255, 0)).save(here / "transparent.png")
halves("L", 255, 0).save(here / "grey.jpg", quality=95)
halves("I;16", 65535, 0).save(here / "grey-16.png")
exif = Image.Exif()
exif[0x0112] = 6  # the camera lay on its side: turn by a quarter to the right
rgb.transpose(Image.Transpose.ROTATE_90).save(here / "turned.jpg", quality=95, subsampling=0, exif=exif)
