import { sha256 } from "../files/sha256.ts";

/** Maximum length of a value that a manifest stores as text, in characters. */
const longestValue = 40;

/** Maximum number of settings that a message lists. */
const maxListed = 6;

const textOf = (value: unknown): string => {
  const text = JSON.stringify(value);
  return text.length <= longestValue ? text : `sha256 ${sha256(text).slice(0, 12)}`;
};

/** Settings by dotted key, as JSON, or as a hash if that is long. Lists are values; undefined settings are left out. */
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
 * Formats the settings that differ, with both values, for messages: ` (batch: 4, now 2; model.hidden: [16], now [64])`.
 *
 * @param before settings of a checkpoint. Absent: unknown.
 * @returns an empty string if `before` is unknown, or nothing differs.
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
