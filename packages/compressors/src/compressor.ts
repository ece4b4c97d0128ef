import {
  add,
  allGather,
  allReduce,
  flattenTree,
  mapTree,
  multiply,
  raggedAllGather,
  reshape,
  split,
  type Tensor,
  type TensorSpec,
  unflattenTree,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { Aggregated, Aggregator, SelectionScope } from "./aggregator.ts";
import { type Bucket, lengthOf } from "./bucket.ts";
import type { AggregateContext, EncodeContext } from "./context.ts";

/** Result of encoding a gradient: the message to send, and the state for the next step. */
export interface Encoded<State, Payload> {
  /** Tree of tensors: the complete message. Nothing else is sent. */
  readonly payload: Payload;
  readonly state: State;
}

/**
 * A gradient codec: traced functions and declared properties. A codec does not communicate, and remembers only its
 * `State`. The payload is sent in one message per step. For an algorithm with several messages, define an `Aggregator`.
 *
 * Methods are not declared as function properties, so that codecs with different state types are assignable to `Codec`.
 */
export interface Codec<State = unknown, Payload = unknown> {
  /** Name of the codec, for reports only. */
  readonly name?: string;
  /**
   * Method of combining the payloads of several ranks. `sum`: decoding is linear, so an all-reduce can add the payloads
   * first. `gather`: each payload must be decoded separately. Leaves of a gathered payload have at least one dimension.
   */
  readonly aggregation: "sum" | "gather";
  /**
   * Whether the expectation of `decode(encode(g))` differs from `g`. If true, the codec needs error feedback to
   * converge.
   */
  readonly biased: boolean;
  /**
   * Scope of selection. "tensor": whether an entry is sent depends only on entries of the same tensor, for any bucket
   * plan.
   */
  readonly scope: SelectionScope;
  /**
   * Returns the contraction δ with ‖u − C(u)‖² ≤ (1 − δ)‖u‖², in expectation for a randomized codec. Absent, or
   * undefined for some lengths: no bound is known.
   */
  contraction?(gradient: TensorSpec): number | undefined;
  /** Returns the initial state for a gradient of this spec; traced. */
  init(gradient: TensorSpec): State;
  /** Compresses a gradient, f32 of any shape. */
  encode(gradient: Tensor, state: State, context?: EncodeContext): Encoded<State, Payload>;
  /**
   * Returns the approximate gradient that a payload encodes. With "sum", the payload may be a sum of payloads of
   * several ranks.
   */
  decode(payload: Payload, gradient: TensorSpec, context?: EncodeContext): Tensor;
  /**
   * Returns the sum of the gradients in `numRanks` payloads, whose leaves are concatenated along dimension 0. Define
   * this function only if it is faster than the default, which decodes payload by payload.
   */
  decodeSum?(payloads: Payload, numRanks: number, gradient: TensorSpec, context?: EncodeContext): Tensor;
  /**
   * Returns the number of leading rows that are in use, equal in all leaves, i32 scalar. Only these rows are sent. The
   * remaining rows are zeros, and must decode to zeros. Present for gathered payloads whose length is known only at run
   * time.
   */
  rows?(payload: Payload): Tensor;
  /** Returns the exact number of bytes of a payload; the maximum if its length is known only at run time. */
  payloadBytes(gradient: TensorSpec): number;
}

/**
 * A codec that is also an aggregator: it sends the payloads of all ranks and computes the mean of the decoded
 * gradients.
 */
export interface Compressor<State = unknown, Payload = unknown> extends Codec<State, Payload>, Aggregator<State> {
  init(gradient: TensorSpec): State;
  contraction?(gradient: TensorSpec): number | undefined;
}

const gatherSum = <State, Payload>(
  codec: Codec<State, Payload>,
  payload: Payload,
  bucket: Bucket,
  context: AggregateContext,
): Tensor => {
  const { axis, collective } = context;
  const numRanks = axisSize(axis);
  const rows = codec.rows?.(payload);
  const gather = (leaf: Tensor): Tensor =>
    rows === undefined ? allGather(leaf, axis, collective) : raggedAllGather(leaf, rows, axis, collective).x;
  const gathered = mapTree(payload, gather) as Payload;
  if (codec.decodeSum !== undefined) return codec.decodeSum(gathered, numRanks, bucket, context);
  const { leaves, structure } = flattenTree<Tensor>(gathered);
  const parts = leaves.map((leaf) => split(leaf, numRanks));
  const decoded = Array.from({ length: numRanks }, (_, rank) =>
    codec.decode(
      unflattenTree(
        structure,
        parts.map((part) => part[rank]!),
      ),
      bucket,
      context,
    ),
  );
  return decoded.reduce((sum, one) => add(sum, one)); // in rank order, for the same bits on every rank
};

/**
 * Returns the number of bytes that a rank sends to combine the payloads of all ranks: `2(P−1)/P` payloads by
 * all-reduce, `P−1` payloads by all-gather.
 */
export const payloadsSent = ({ aggregation }: Pick<Codec, "aggregation">, bytes: number, worldSize: number): number =>
  bytes * (aggregation === "sum" ? (2 * (worldSize - 1)) / worldSize : worldSize - 1);

/**
 * Returns a compressor for a codec. Payloads are added by all-reduce, or gathered and decoded, as `aggregation`
 * declares.
 *
 * @example
 * ```ts
 * const compressor = defineCompressor({
 *   name: "half",
 *   scope: "bucket",
 *   biased: false,
 *   aggregation: "gather",
 *   init: () => [],
 *   payloadBytes: ({ shape }) => 2 * elementCount(shape),
 *   encode: (flat) => ({ payload: { half: cast(flat, "f16") }, state: [] }),
 *   decode: ({ half }) => cast(half, "f32"),
 * });
 * console.log(exchangeBytes({ w: NdArray.from([1, 2, 3, 4]) }, { compressor }, 2)); // 8
 * ```
 */
export const defineCompressor = <State, Payload>(codec: Codec<State, Payload>): Compressor<State, Payload> => ({
  ...codec,
  aggregate: (gradient, state, bucket, context): Aggregated<State> => {
    const { payload, state: next } = codec.encode(gradient, state, context);
    const { axis, collective } = context;
    const sum =
      codec.aggregation === "gather"
        ? gatherSum(codec, payload, bucket, context)
        : codec.decode(
            mapTree(payload, (leaf: Tensor) => allReduce(leaf, axis, "sum", collective)) as Payload,
            bucket,
            context,
          );
    const numRanks = axisSize(axis);
    return {
      mean: reshape(numRanks === 1 ? sum : multiply(sum, 1 / numRanks), [lengthOf(bucket)]),
      sent: codec.decode(payload, bucket, context),
      state: next,
    };
  },
  bytesSent: (bucket, worldSize) => payloadsSent(codec, codec.payloadBytes(bucket), worldSize),
});
