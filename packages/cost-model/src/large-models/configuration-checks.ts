import { ArgumentError } from "@skein/tensor-core";
import type { ModelShape, TransformerShape } from "./model-shape.ts";

/** More than any batch or sequence has; products of several stay exact enough. */
const most = 1e9;

/** @throws ArgumentError unless the value is a whole number from 1 to 10⁹. */
export const checkCount = (name: string, value: number): void => {
  if (!(Number.isInteger(value) && value >= 1 && value <= most))
    throw new ArgumentError(
      `${name} is ${typeof value === "string" ? `"${value}"` : String(value)}, but it is a whole number from 1 to ${most}; set it so`,
    );
};

/** @throws ArgumentError for a setting that nothing reads: it would change nothing without a word. */
export const checkNames = (what: string, configuration: object, known: readonly string[]): void => {
  const unknown = Object.keys(configuration).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new ArgumentError(`${what} has no setting "${unknown}"; its settings are ${known.join(", ")}`);
};

/** @throws ArgumentError unless the value is among those allowed. */
export const checkChoice = (name: string, value: unknown, allowed: readonly unknown[]): void => {
  if (!allowed.includes(value))
    throw new ArgumentError(`${name} is ${String(value)}, but it is one of ${allowed.join(", ")}`);
};

/** @throws ArgumentError unless so many ranks can share each layer. */
export const checkTensorParallel = (shape: TransformerShape, tensorParallel: number, ranks: number): void => {
  checkCount("tensorParallel", tensorParallel);
  const { name, heads, keyValueHeads, hidden } = shape;
  if (ranks % tensorParallel !== 0)
    throw new ArgumentError(
      `tensorParallel is ${tensorParallel} on ${ranks} ranks; choose a number that divides the ranks`,
    );
  if (heads % tensorParallel !== 0 || hidden % tensorParallel !== 0)
    throw new ArgumentError(
      `tensorParallel is ${tensorParallel}, but ${name} has ${heads} heads and a hidden width of ${hidden}; choose a number that divides both`,
    );
  if (keyValueHeads % tensorParallel !== 0 && tensorParallel % keyValueHeads !== 0)
    throw new ArgumentError(
      `tensorParallel is ${tensorParallel}, but ${name} has ${keyValueHeads} heads of keys and values; choose a number that divides them, or a multiple`,
    );
};

/** @throws ArgumentError for more positions than were learned. */
export const checkLength = (shape: TransformerShape, what: string, length: number): void => {
  checkCount(what, length);
  if (shape.positions === "learned" && length > shape.contextLength)
    throw new ArgumentError(
      `${what} is ${length}, but ${shape.name} has learned ${shape.contextLength} positions; use no more`,
    );
};

/** @throws ArgumentError for a setting of transformers that a residual network was given. */
export const checkImagesOnly = (shape: ModelShape, settings: Readonly<Record<string, unknown>>): void => {
  const given = Object.entries(settings).find(([, value]) => value !== undefined);
  if (given !== undefined)
    throw new ArgumentError(
      `${given[0]} is set, but ${shape.name} is no transformer, and it would have no effect; leave it out`,
    );
};
