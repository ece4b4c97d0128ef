/**
 * Escapes text for use between tags and inside quoted attributes of HTML and SVG. Control characters, which are invalid
 * in HTML and SVG, become spaces.
 */
export const escapeText = (text: string): string =>
  text
    // oxlint-disable-next-line no-control-regex
    .replaceAll(/[\u0000-\u001F\u007F\uFFFE\uFFFF]/g, " ")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
