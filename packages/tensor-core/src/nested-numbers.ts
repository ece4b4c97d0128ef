import { ArgumentError } from "./errors.ts";
import { describe } from "./describe.ts";
import { excerpt } from "./excerpt.ts";
import { formatShape } from "./shape.ts";

/** Nested lists of numbers, as deep as the tensor has dimensions. */
export type NestedNumbers = number | readonly NestedNumbers[];

/** A typed array, or anything else that holds numbers in a row. */
const isFlat = (value: unknown): value is ArrayLike<number> =>
  ArrayBuffer.isView(value) ||
  (typeof value === "object" && value !== null && !Array.isArray(value) && "length" in value);

const isNumbers = (list: readonly unknown[]): list is readonly number[] => {
  // By index: `every` passes over the holes of a sparse list.
  for (let i = 0; i < list.length; i++) if (typeof list[i] !== "number") return false;
  return true;
};

const refuseElement = (op: string, value: unknown, place: readonly number[]): never => {
  const where = place.length === 0 ? "" : ` at ${formatShape(place)}`;
  throw new ArgumentError(
    `${op}: ${value === undefined ? "nothing" : describe(value)}${where} is no number; give numbers, a list of numbers, or lists of them of one length`,
  );
};

/**
 * The numbers of nested lists in row-major order, and the shape that the lists have. A flat list is handed back as it
 * is.
 *
 * @param op the caller, for messages.
 * @throws ArgumentError for lists of different length or depth, and for what is no number.
 * Cost: one look at each value, and a copy where lists are nested.
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
  const place: number[] = [];
  const visit = (value: unknown): void => {
    const depth = place.length;
    if (depth === shape.length) {
      if (Array.isArray(value))
        throw ragged(`${excerpt(value)} at ${formatShape(place)} is a list`, "where others hold a number");
      flat.push(typeof value === "number" ? value : refuseElement(op, value, place));
      return;
    }
    if (!Array.isArray(value)) {
      if (typeof value !== "number") refuseElement(op, value, place);
      throw ragged(`${excerpt(value)} at ${formatShape(place)} is a number`, "where others hold a list");
    }
    if (value.length !== shape[depth])
      throw ragged(
        `the list at ${formatShape(place)} has ${value.length} entries`,
        `the first of its depth has ${shape[depth]}`,
      );
    for (let i = 0; i < value.length; i++) {
      place.push(i);
      visit(value[i]);
      place.pop();
    }
  };
  const ragged = (found: string, expected: string): ArgumentError =>
    new ArgumentError(`${op}: ${found}, ${expected}; lists of one depth must have one length, fill the short ones up`);
  visit(values);
  return { flat, shape };
};
