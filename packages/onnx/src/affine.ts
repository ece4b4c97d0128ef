/** An affine function of the batch size: `times · batch + plus`. */
export interface Affine {
  readonly times: number;
  readonly plus: number;
}

/** A dimension size: a number, or an affine function of the batch size. */
export type Dim = number | Affine;

/**
 * Batch sizes at which a function is traced: two batch sizes determine an affine function, and the third verifies it.
 */
export const probes = [2, 3, 5] as const;

/**
 * Returns the affine function of the batch size that has the given values at the three batch sizes `probes`. Returns
 * undefined if no such function exists.
 */
export const affineOf = (values: readonly number[]): Dim | undefined => {
  const [first, second, third] = values as [number, number, number];
  if (Object.is(first, second) && Object.is(first, third)) return first;
  const times = second - first;
  const plus = first - probes[0] * times;
  return Number.isInteger(times) && times > 0 && plus + probes[2] * times === third ? { times, plus } : undefined;
};

export const isKnown = (dim: Dim): dim is number => typeof dim === "number";

/** Returns the name of a dimension size in an ONNX model. Equal sizes have equal names. */
export const dimName = ({ times, plus }: Affine): string =>
  `${times === 1 ? "" : `${times} * `}batch${plus === 0 ? "" : ` ${plus < 0 ? "-" : "+"} ${Math.abs(plus)}`}`;
