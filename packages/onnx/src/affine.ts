/** A number that follows from the size of a batch: `times · batch + plus`. */
export interface Affine {
  readonly times: number;
  readonly plus: number;
}

/** A size, known or as the batch has it. */
export type Dim = number | Affine;

/** Batches that a function is traced with: two that tell an affine number, and one that proves it. */
export const probes = [2, 3, 5] as const;

/** The number that takes these values at the three batches; undefined where none follows from the batch so. */
export const affineOf = (values: readonly number[]): Dim | undefined => {
  const [first, second, third] = values as [number, number, number];
  if (Object.is(first, second) && Object.is(first, third)) return first;
  const times = second - first;
  const plus = first - probes[0] * times;
  return Number.isInteger(times) && times > 0 && plus + probes[2] * times === third ? { times, plus } : undefined;
};

export const isKnown = (dim: Dim): dim is number => typeof dim === "number";

/** How a size is said in an ONNX model: a number, or a name that is equal where sizes are. */
export const dimName = ({ times, plus }: Affine): string =>
  `${times === 1 ? "" : `${times} * `}batch${plus === 0 ? "" : ` ${plus < 0 ? "-" : "+"} ${Math.abs(plus)}`}`;
