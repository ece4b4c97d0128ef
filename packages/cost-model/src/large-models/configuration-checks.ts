import { ArgumentError } from "@skein/tensor-core";
import type { ModelShape, TransformerShape } from "./model-shape.ts";

/**
 * Upper bound of all counts. No batch or sequence is larger, and the rounding errors of products of several such counts
 * are small.
 */
const most = 1e9;

/** Checks a count. @throws ArgumentError unless the value is an integer from 1 to 10⁹. */
export const checkCount = (name: string, value: number): void => {
  if (!(Number.isInteger(value) && value >= 1 && value <= most))
    throw new ArgumentError(
      `${name} is ${typeof value === "string" ? `"${value}"` : String(value)}, but must be a whole number from 1 to ${most}; change ${name}`,
    );
};

/**
 * Checks the names of settings.
 * @throws ArgumentError if a setting is unknown, because the setting would silently have no effect.
 */
export const checkNames = (what: string, configuration: object, known: readonly string[]): void => {
  const unknown = Object.keys(configuration).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new ArgumentError(`${what} has no setting "${unknown}"; its settings are ${known.join(", ")}`);
};

/** Checks that a value is one of the allowed values. @throws ArgumentError if the value is not allowed. */
export const checkChoice = (name: string, value: unknown, allowed: readonly unknown[]): void => {
  if (!allowed.includes(value))
    throw new ArgumentError(`${name} is ${String(value)}, but must be one of ${allowed.join(", ")}; change ${name}`);
};

/**
 * Checks the number of tensor-parallel ranks.
 * @throws ArgumentError if this number does not divide the sizes of a layer evenly.
 */
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

/** Checks a sequence length. @throws ArgumentError if the length exceeds the model's number of learned positions. */
export const checkLength = (shape: TransformerShape, what: string, length: number): void => {
  checkCount(what, length);
  if (shape.positions === "learned" && length > shape.contextLength)
    throw new ArgumentError(
      `${what} is ${length}, but ${shape.name} has ${shape.contextLength} learned positions; use at most ${shape.contextLength}`,
    );
};

/**
 * Checks that no transformer settings are given for a residual network. @throws ArgumentError if such a setting is
 * given.
 */
export const checkImagesOnly = (shape: ModelShape, settings: Readonly<Record<string, unknown>>): void => {
  const given = Object.entries(settings).find(([, value]) => value !== undefined);
  if (given !== undefined)
    throw new ArgumentError(
      `${given[0]} is set, but has no effect on ${shape.name}, which is not a transformer; leave ${given[0]} out`,
    );
};
