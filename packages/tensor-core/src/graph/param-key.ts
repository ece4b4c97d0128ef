import type { ParamValue } from "./graph.ts";

/**
 * Returns a key string of a parameter value: two keys are equal if and only if the values are equal. Record keys are
 * sorted, and, unlike in JSON, ±0, NaN and ±∞ are distinguished.
 */
export const paramKey = (value: ParamValue): string => {
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly ParamValue[]).map(paramKey).join(",")}]`;
  const record = value as { readonly [key: string]: ParamValue };
  return `{${Object.keys(record)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${paramKey(record[key]!)}`)
    .join(",")}}`;
};
