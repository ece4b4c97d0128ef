/** Escapes text for an SVG. */
export const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Rounds to a tenth of a pixel, which is exact enough and keeps files small. */
export const roundPixel = (pixel: number): number => Math.round(pixel * 10) / 10;
