import {
  arange,
  elementCount,
  flatten,
  full,
  notEqual,
  reduceMax,
  reshape,
  type Shape,
  type Tensor,
  where,
  add,
} from "@skein/tensor-core";
import type { EncodeContext } from "./context.ts";
import { type Codec, type Compressor, defineCompressor } from "./compressor.ts";
import { densify } from "./sparse-entries.ts";
import { packSparse, type SparsePayload, unpackSparse } from "./sparse-payload.ts";

export interface SparsifierRule {
  /** Name of the compressor, for reports only. */
  readonly name: string;
  /** Returns the number of payload entries for `n` gradient entries; with `ragged`, the maximum. */
  capacity(n: number): number;
  /**
   * Returns the contraction: the minimum share of energy that is sent, for a gradient of `n` entries. Absent, or
   * undefined for some n: no bound is known.
   */
  contraction?(n: number): number | undefined;
  /**
   * Whether the number of selected entries is known only at run time. If true, no selected entry has value 0, and slots
   * after the last entry are not sent.
   */
  readonly ragged?: boolean;
  /** Selects the entries to send. @param flat f32 [n]. */
  select(flat: Tensor, context: EncodeContext): SparsePayload;
}

const scatter = (entries: SparsePayload, shape: Shape): Tensor => reshape(densify(entries, elementCount(shape)), shape);

/**
 * Returns the number of rows up to the last nonzero value. Uses the index of this value instead of a count of nonzero
 * values, because a device may flush subnormal values to 0.
 */
const validRows = ({ values }: SparsePayload): Tensor => {
  const [capacity] = values.shape as readonly [number];
  if (capacity === 0) return full([], 0, "i32");
  return reduceMax(where(notEqual(values, 0), add(arange(capacity), 1), 0));
};

const packCodec = ({ encode, decode, decodeSum, rows, ...facts }: Codec<[], SparsePayload>): Codec<[], Tensor> => ({
  ...facts,
  encode: (gradient, state, context) => {
    const { payload, state: next } = encode(gradient, state, context);
    return { payload: packSparse(payload), state: next };
  },
  decode: (payload, gradient, context) => decode(unpackSparse(payload), gradient, context),
  decodeSum: (payloads, numRanks, gradient) => decodeSum!(unpackSparse(payloads), numRanks, gradient),
  ...(rows && { rows: (payload) => rows(unpackSparse(payload)) }),
});

/**
 * Defines a compressor that sends selected entries unchanged. Each rank selects its own entries; values and indices are
 * sent in one message by all-gather.
 *
 * Cost: 8 bytes per entry (f32 value, i32 index), so 8k(P−1) sent per rank.
 */
export const defineSparsifier = ({
  name,
  capacity,
  contraction,
  ragged = false,
  select,
}: SparsifierRule): Compressor<[], SparsePayload> => {
  const codec: Codec<[], SparsePayload> = {
    name,
    aggregation: "gather",
    biased: true,
    scope: "bucket",
    ...(contraction && { contraction: ({ shape }) => contraction(elementCount(shape)) }),
    init: () => [],
    encode: (gradient, state, context = {}) => ({ payload: select(flatten(gradient), context), state }),
    decode: (payload, { shape }) => scatter(payload, shape),
    // The entries of all ranks are concatenated, and one scatter adds them in this order. So every rank gets the same
    // bits.
    decodeSum: (payloads, _, { shape }) => scatter(payloads, shape),
    ...(ragged && { rows: validRows }),
    payloadBytes: ({ shape }) => 8 * capacity(elementCount(shape)),
  };
  const message = defineCompressor(packCodec(codec));
  return {
    ...defineCompressor(codec),
    aggregate: (gradient, state, bucket, context) => message.aggregate(gradient, state, bucket, context),
  };
};
