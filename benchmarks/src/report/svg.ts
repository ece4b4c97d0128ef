/** Text as it may stand in an SVG. */
export const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** A tenth of a pixel is exact enough, and keeps files small. */
export const roundPixel = (pixel: number): number => Math.round(pixel * 10) / 10;
