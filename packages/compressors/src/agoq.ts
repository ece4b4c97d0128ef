import {
  add,
  allGather,
  allToAll,
  axisIndex,
  dequantize,
  equal,
  iota,
  multiply,
  pad,
  quantize,
  reshape,
  split,
  subtract,
  type Tensor,
  where,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import type { AggregationHalves, Aggregator } from "./aggregator.ts";
import { blockShape, fromBlocks } from "./blocks.ts";
import { type Bucket, lengthOf } from "./bucket.ts";
import { aggregateInHalves } from "./aggregate-in-halves.ts";

export interface AgoqOptions {
  /** Maximum number of entries that share a scale. Default: 256. */
  readonly blockSize?: number;
}

/** Sum of this rank's shard over all ranks, quantized: codes u8 `[rows, size]` and scales f32 `[rows, 1]`. */
interface PendingShard {
  readonly codes: Tensor;
  readonly scales: Tensor;
}

/**
 * All-reduce in 8 bits (AGoQ). An all-to-all sends codes and scales of shard r to rank r. Rank r adds the shards in f32
 * and quantizes the sum. An all-gather distributes the quantized sums. Every entry is rounded twice, for any number of
 * ranks. A ring with 8-bit partial sums would round every entry P − 1 times.
 *
 * Error per entry of the mean: at most half a quantization step of each rank's block, averaged, plus half a step of the
 * sum's block divided by P. On the rank that quantizes a sum, `sent` includes the error of the sum, so that error
 * feedback corrects both errors. The first half ends with the sum; the second half is the all-gather.
 *
 * The gradient is cut into P shards of `rows` blocks and padded with fewer than `P · (rows + 1)` zeros. The authors'
 * code instead adds in bf16, and uses a dense all-reduce for shards that are not a multiple of the block size.
 *
 * @throws ArgumentError unless blockSize is a positive integer.
 * Cost: `2(P−1) · rows · (size + 4)` bytes sent, about `2(P−1)/P · n(1 + 4/blockSize)`: a quarter of f32.
 * @example
 * ```ts
 * const compressor = withErrorFeedback(agoqAggregator());
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([127, -64, 32, 1]));
 * console.log(sent.toNumbers()); // [127, -64, 32, 1]
 * ```
 * Source: AGoQ, arXiv 2605.00539.
 */
export const agoqAggregator = ({ blockSize = 256 }: AgoqOptions = {}): Aggregator<[]> => {
  blockShape(0, blockSize);
  const shardShape = (bucket: Bucket, numRanks: number): readonly [rows: number, size: number] =>
    blockShape(Math.ceil(lengthOf(bucket) / numRanks), blockSize);
  const halves: AggregationHalves<[]> = {
    begin: (gradient, state, bucket, { axis, collective }) => {
      const numRanks = axisSize(axis);
      const count = lengthOf(bucket);
      const [rows, size] = shardShape(bucket, numRanks);
      const shards = reshape(pad(gradient, [[0, numRanks * rows * size - count]]), [numRanks, rows, size]);
      const own = quantize(shards);
      const codes = split(allToAll(own.codes, axis, collective), numRanks);
      const scales = split(allToAll(own.scale, axis, collective), numRanks);
      // Added in rank order, in f32. A bf16 sum would lose precision that the codes have.
      const sum = codes.map((code, rank) => dequantize(code, scales[rank]!)).reduce((total, one) => add(total, one));
      const total = quantize(sum);
      const error = subtract(dequantize(total.codes, total.scale), sum);
      const isOwn = equal(iota([numRanks, 1, 1], "i32", { dim: 0 }), axisIndex(axis));
      return {
        pending: { codes: total.codes, scales: total.scale } satisfies PendingShard,
        sent: fromBlocks([add(dequantize(own.codes, own.scale), where(isOwn, error, 0))], count),
        state,
      };
    },
    finish: (pending, bucket, { axis, collective }) => {
      const { codes, scales } = pending as PendingShard;
      const sum = dequantize(allGather(codes, axis, collective), allGather(scales, axis, collective));
      const numRanks = axisSize(axis);
      return fromBlocks([numRanks === 1 ? sum : multiply(sum, 1 / numRanks)], lengthOf(bucket));
    },
  };
  return {
    name: "AGoQ",
    biased: true,
    scope: "bucket",
    init: () => [],
    aggregate: aggregateInHalves(halves),
    halves,
    bytesSent: (bucket, worldSize) => {
      const [rows, size] = shardShape(bucket, worldSize);
      return 2 * (worldSize - 1) * rows * (size + 4);
    },
  };
};
