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

/** What a compressor sends, and what it keeps for the next step. */
export interface Encoded<State, Payload> {
  /** Tree of tensors; all of it travels, nothing else does. */
  readonly payload: Payload;
  readonly state: State;
}

/**
 * A gradient codec: traced functions and declared facts. It neither communicates nor keeps anything; what it must
 * remember is in `State`. One message per step carries the payload; what needs more than one is an `Aggregator` of its
 * own.
 *
 * The methods are methods (not function properties) so that codecs of different states fit one `Codec`.
 */
export interface Codec<State = unknown, Payload = unknown> {
  /** For reports only. */
  readonly name?: string;
  /**
   * How payloads of several ranks become one: `sum` when decoding is linear, so that an all-reduce may add the payloads
   * first; `gather` when each must be decoded. Leaves of a gathered payload have at least one dimension.
   */
  readonly aggregation: "sum" | "gather";
  /** Whether the expectation of `decode(encode(g))` differs from `g`, so that error feedback is needed to converge. */
  readonly biased: boolean;
  /** Whether an entry is judged within its tensor alone, however tensors are bucketed. */
  readonly scope: SelectionScope;
  /**
   * δ of ‖u − C(u)‖² ≤ (1 − δ)‖u‖², in expectation where it draws. Absent, or undefined for some lengths, where none is
   * known.
   */
  contraction?(gradient: TensorSpec): number | undefined;
  /** State for a gradient of this spec; traced. */
  init(gradient: TensorSpec): State;
  /** Compress; f32 of any shape. */
  encode(gradient: Tensor, state: State, context?: EncodeContext): Encoded<State, Payload>;
  /** The approximate gradient that a payload stands for. With "sum" the payload may be that of several ranks, added. */
  decode(payload: Payload, gradient: TensorSpec, context?: EncodeContext): Tensor;
  /**
   * Sum of the gradients of `numRanks` payloads, given leaf by leaf one after another along dimension 0. Only where it
   * can be done cheaper than by decoding one by one, which is the default.
   */
  decodeSum?(payloads: Payload, numRanks: number, gradient: TensorSpec, context?: EncodeContext): Tensor;
  /**
   * Of a gathered payload whose length is known at run time only: i32 scalar, the rows of every leaf that count. Only
   * those travel; zeros stand in place of the others, and must decode to nothing.
   */
  rows?(payload: Payload): Tensor;
  /** Exact bytes of a payload; of those whose length is known at run time only, the most. */
  payloadBytes(gradient: TensorSpec): number;
}

/** A codec, and the aggregation of its payloads. */
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
  return decoded.reduce((sum, one) => add(sum, one)); // in rank order: the same bits on every rank
};

/**
 * Bytes that a rank sends so that all have the payloads of all: `2(P−1)/P` of a payload by all-reduce, `P−1` payloads
 * by all-gather.
 */
export const payloadsSent = ({ aggregation }: Pick<Codec, "aggregation">, bytes: number, worldSize: number): number =>
  bytes * (aggregation === "sum" ? (2 * (worldSize - 1)) / worldSize : worldSize - 1);

/** A codec whose payloads are added by all-reduce, or gathered and decoded, as it declares. */
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
