import { excerpt } from "./excerpt.ts";
import { formatSpec, type TensorSpec } from "./shape.ts";
import { Printable } from "./printable.ts";

/** Whether a value has a dtype and a shape, as arrays and specs have. */
export const isSpec = (value: unknown): value is TensorSpec =>
  typeof value === "object" &&
  value !== null &&
  "dtype" in value &&
  Array.isArray((value as { readonly shape?: unknown }).shape);

/** Whether a value is a promise (has a `then` method). */
export const isPromise = (value: unknown): boolean =>
  typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";

/** Whether a value is a list, nested to any depth, whose first element is a number. */
export const isNumberList = (value: unknown): boolean => {
  let first = value;
  while (Array.isArray(first)) first = first[0];
  return Array.isArray(value) && typeof first === "number";
};

/**
 * Describes an unexpected value for an error message, in words that users understand.
 *
 * @example describe(new Float32Array(3)); // "a Float32Array of 3 values"
 */
export const describe = (value: unknown): string => {
  if (value === undefined) return "missing";
  if (value instanceof Printable) return `${value}`;
  if (isSpec(value)) return `an object with the spec ${formatSpec(value)}`;
  if (ArrayBuffer.isView(value))
    return `a ${Object.prototype.toString.call(value).slice(8, -1)} of ${(value as Float32Array).length} values`;
  if (isPromise(value)) return "a Promise";
  if (typeof value === "function") return value.name === "" ? "a function" : `the function ${value.name}`;
  if (Array.isArray(value)) return `the list ${excerpt(value)}`;
  if (typeof value === "number" || typeof value === "bigint") return `the number ${value}`;
  return excerpt(value);
};
