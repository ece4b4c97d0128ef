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
  /** For reports only. */
  readonly name: string;
  /** Entries of a payload of `n`; the most, with `ragged`. */
  capacity(n: number): number;
  /** Least part of the energy of `n` entries that is sent. Absent, or undefined for some n, where none is known. */
  contraction?(n: number): number | undefined;
  /**
   * Whether the count is known at run time only. Then no entry has value 0, and what is behind the last one does not
   * travel.
   */
  readonly ragged?: boolean;
  /** The entries to send. @param flat f32 [n]. */
  select(flat: Tensor, context: EncodeContext): SparsePayload;
}

const scatter = (entries: SparsePayload, shape: Shape): Tensor => reshape(densify(entries, elementCount(shape)), shape);

/** Up to the last entry that is not 0. By its place, not by counting: a device may take a subnormal value for 0. */
const validRows = ({ values }: SparsePayload): Tensor => {
  const [capacity] = values.shape as readonly [number];
  if (capacity === 0) return full([], 0, "i32");
  return reduceMax(where(notEqual(values, 0), add(arange(capacity), 1), 0));
};

const packed = ({ encode, decode, decodeSum, rows, ...facts }: Codec<[], SparsePayload>): Codec<[], Tensor> => ({
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
 * A compressor that sends some entries as they are, chosen by each rank for itself: values and positions in one message
 * by all-gather.
 *
 * Cost: 8 bytes per entry (f32 value, i32 position), so 8k(P−1) sent per rank.
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
    // Entries of all ranks lie one after another, and a scatter adds in that order: one pass, the same bits on every
    // rank.
    decodeSum: (payloads, _, { shape }) => scatter(payloads, shape),
    ...(ragged && { rows: validRows }),
    payloadBytes: ({ shape }) => 8 * capacity(elementCount(shape)),
  };
  const message = defineCompressor(packed(codec));
  return {
    ...defineCompressor(codec),
    aggregate: (gradient, state, bucket, context) => message.aggregate(gradient, state, bucket, context),
  };
};
