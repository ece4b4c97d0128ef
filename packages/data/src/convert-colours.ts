/**
 * Converts colors to gray: ITU-R 601 luma, rounded as in Pillow's `convert("L")`.
 *
 * @param colours RGB pixels, u8 [pixels, 3].
 * @returns gray pixels, u8 [pixels].
 */
export const luma = (colours: Uint8Array): Uint8Array => {
  const grey = new Uint8Array(colours.length / 3);
  for (let i = 0, from = 0; i < grey.length; i++, from += 3)
    grey[i] = (19595 * colours[from]! + 38470 * colours[from + 1]! + 7471 * colours[from + 2]! + 32768) >> 16;
  return grey;
};

/**
 * Converts CMYK to RGB without a color profile, as Pillow's `convert("RGB")`.
 *
 * @param inks CMYK pixels, u8 [pixels, 4].
 * @returns RGB pixels, u8 [pixels, 3].
 */
export const coloursOfInks = (inks: Uint8Array): Uint8Array => {
  const colours = new Uint8Array((inks.length / 4) * 3);
  for (let from = 0, to = 0; from < inks.length; from += 4, to += 3) {
    const light = 255 - inks[from + 3]!;
    for (let ink = 0; ink < 3; ink++) {
      const product = inks[from + ink]! * light + 128;
      colours[to + ink] = Math.max(0, light - ((product + (product >> 8)) >> 8));
    }
  }
  return colours;
};
