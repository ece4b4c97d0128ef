/**
 * Text as it may stand between tags and inside quoted attributes, of HTML and of SVG. Control characters, which neither
 * may hold, become spaces.
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
