import { ArgumentError } from "./errors.ts";
import { describe } from "./describe.ts";
import { excerpt } from "./excerpt.ts";
import { formatShape } from "./shape.ts";

/** Nested lists of numbers; the nesting depth is the number of dimensions. */
export type NestedNumbers = number | readonly NestedNumbers[];

/** Whether a value is a typed array or another flat array-like of numbers. */
const isFlat = (value: unknown): value is ArrayLike<number> =>
  ArrayBuffer.isView(value) ||
  (typeof value === "object" && value !== null && !Array.isArray(value) && "length" in value);

const isNumbers = (list: readonly unknown[]): list is readonly number[] => {
  // Loop by index, because `every` skips missing elements of a sparse list.
  for (let i = 0; i < list.length; i++) if (typeof list[i] !== "number") return false;
  return true;
};

const refuseElement = (op: string, value: unknown, index: readonly number[]): never => {
  const where = index.length === 0 ? "" : ` at ${formatShape(index)}`;
  throw new ArgumentError(
    `${op}: ${value === undefined ? "nothing" : describe(value)}${where} is not a number; pass numbers, a list of numbers, or nested lists of equal length`,
  );
};

/**
 * Returns the numbers of nested lists in row-major order, and the shape of the lists. A flat list is not copied.
 *
 * @param op Name of the calling function, for messages.
 * @throws ArgumentError if lists have different lengths or depths, or an element is not a number. Cost: one check per
 * value, and one copy if lists are nested.
 */
export const readNested = (
  op: string,
  values: NestedNumbers | ArrayLike<number>,
): { readonly flat: ArrayLike<number>; readonly shape: readonly number[] } => {
  if (isFlat(values)) return { flat: values, shape: [values.length] };
  const shape: number[] = [];
  for (let first: unknown = values; Array.isArray(first); first = first[0]) shape.push(first.length);
  if (shape.length === 1 && isNumbers(values as readonly unknown[]))
    return { flat: values as readonly number[], shape };
  const flat: number[] = [];
  const index: number[] = [];
  const visit = (value: unknown): void => {
    const depth = index.length;
    if (depth === shape.length) {
      if (Array.isArray(value))
        throw ragged(`${excerpt(value)} at ${formatShape(index)} is a list`, "but others are numbers");
      flat.push(typeof value === "number" ? value : refuseElement(op, value, index));
      return;
    }
    if (!Array.isArray(value)) {
      if (typeof value !== "number") refuseElement(op, value, index);
      throw ragged(`${excerpt(value)} at ${formatShape(index)} is a number`, "but others are lists");
    }
    if (value.length !== shape[depth])
      throw ragged(
        `the list at ${formatShape(index)} has ${value.length} entries`,
        `the first of its depth has ${shape[depth]}`,
      );
    for (let i = 0; i < value.length; i++) {
      index.push(i);
      visit(value[i]);
      index.pop();
    }
  };
  const ragged = (found: string, expected: string): ArgumentError =>
    new ArgumentError(
      `${op}: ${found}, ${expected}; lists of the same depth must have the same length, pad the short ones`,
    );
  visit(values);
  return { flat, shape };
};
