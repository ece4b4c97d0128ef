import { sha256 } from "@skein/cli/node";

/** Maximum length, in characters, of a setting's value that a manifest stores as text. */
const longestValue = 40;

/** Maximum number of settings listed in a message. */
const maxListed = 6;

const textOf = (value: unknown): string => {
  const text = JSON.stringify(value);
  return text.length <= longestValue ? text : `sha256 ${sha256(text).slice(0, 12)}`;
};

/**
 * Returns job settings by dotted key. Values are JSON text, or a hash if the text is long. A list is one value;
 * undefined settings are omitted.
 */
export const flatSettings = (settings: Readonly<Record<string, unknown>>): Record<string, string> => {
  const flat: Record<string, string> = {};
  const visit = (value: unknown, path: string): void => {
    if (value === undefined) return;
    if (typeof value !== "object" || value === null || Array.isArray(value)) flat[path] = textOf(value);
    else for (const [key, own] of Object.entries(value)) visit(own, path === "" ? key : `${path}.${key}`);
  };
  visit(settings, "");
  return flat;
};

/**
 * Formats the differing settings for messages, with the old and the new value:
 * ` (batch: 4, now 2; model.hidden: [16], now [64])`.
 *
 * @param before settings of a checkpoint. Absent: unknown.
 * @returns an empty string if `before` is absent, or all settings are equal.
 */
export const differencesOf = (
  before: Readonly<Record<string, string>> | undefined,
  now: Readonly<Record<string, string>>,
): string => {
  if (before === undefined) return "";
  const keys = [...new Set([...Object.keys(before), ...Object.keys(now)])].filter((key) => before[key] !== now[key]);
  if (keys.length === 0) return "";
  const listed = keys
    .slice(0, maxListed)
    .map((key) => `${key}: ${before[key] ?? "not set"}, now ${now[key] ?? "not set"}`);
  return ` (${listed.join("; ")}${keys.length > listed.length ? `; ${keys.length - listed.length} more` : ""})`;
};
