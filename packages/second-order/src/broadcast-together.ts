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

/** A tensor that is available on one rank, and that all other ranks need. */
export interface RootTensor {
  /** Index of the rank that has the tensor, along the axis. */
  readonly root: number;
  readonly shape: Shape;
  /** Tensor to send. Present on the root only. */
  readonly value?: Tensor;
}

/**
 * Broadcasts tensors of several roots to all ranks along an axis. Each root's tensors are concatenated for one
 * broadcast.
 *
 * @returns the tensors, in the given order.
 * Cost: a broadcast per root, of `Σ n` floats.
 */
export const broadcastTogether = (name: string, axis: string, tensors: readonly RootTensor[]): Tensor[] => {
  const received: Tensor[] = [];
  const byRoot = Map.groupBy(
    tensors.map((tensor, i) => ({ ...tensor, i, size: elementCount(tensor.shape) })),
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
