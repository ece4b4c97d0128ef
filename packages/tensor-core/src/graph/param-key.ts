import type { ParamValue } from "./graph.ts";

/**
 * A string that is equal exactly if two parameter values are equal: record keys sorted, and ±0, NaN and ±∞
 * distinguished, unlike in JSON.
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
