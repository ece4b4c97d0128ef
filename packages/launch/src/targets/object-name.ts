import { createHash } from "node:crypto";

/**
 * Maximum length of an object name. JobSet names a pod `<object name>-launcher-0-<index>` and five random letters, and
 * a pod's name is a DNS label of at most 63 characters. So the maximum is 63 − 12 − 5 digits of the index − 6.
 */
export const longestObjectName = 40;

/**
 * Converts any text to a DNS label (RFC 1035: a letter, then letters, digits and hyphens). A truncated name ends with a
 * hash of the whole text, so that different long texts have different names.
 */
export const objectName = (text: string): string => {
  const clean = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  const named = /^[a-z]/.test(clean) ? clean : `skein-${clean}`.replace(/-+$/, "");
  if (named.length <= longestObjectName) return named;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 6);
  return `${named.slice(0, longestObjectName - 7).replace(/-+$/, "")}-${hash}`;
};
