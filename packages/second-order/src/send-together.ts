import {
  broadcastFromRoot,
  concat,
  elementCount,
  full,
  inPhase,
  reshape,
  scope,
  type Shape,
  split,
  type Tensor,
} from "@skein/tensor-core";

/** One tensor that a rank has and others need. */
export interface Parcel {
  /** Position along the axis of the rank that has it. */
  readonly root: number;
  readonly shape: Shape;
  /** On the root alone. */
  readonly value?: Tensor;
}

/**
 * Give all ranks along an axis what each has for them: one broadcast per root, of its parcels end to end.
 *
 * @returns the tensors, in the order of the parcels.
 * Cost: a broadcast per root, of `Σ n` floats.
 */
export const sendTogether = (name: string, axis: string, parcels: readonly Parcel[]): Tensor[] => {
  const received: Tensor[] = [];
  const byRoot = Map.groupBy(
    parcels.map((parcel, i) => ({ ...parcel, i, size: elementCount(parcel.shape) })),
    ({ root }) => root,
  );
  for (const [root, own] of [...byRoot].sort(([a], [b]) => a - b))
    inPhase("communication", () =>
      scope(`${name}-${root}`, () => {
        const flat = concat(
          own.map(({ value, size }) => (value === undefined ? full([size], 0) : reshape(value, [size]))),
        );
        split(
          broadcastFromRoot(flat, axis, root),
          own.map(({ size }) => size),
        ).forEach((part, at) => {
          received[own[at]!.i] = reshape(part, own[at]!.shape);
        });
      }),
    );
  return received;
};
