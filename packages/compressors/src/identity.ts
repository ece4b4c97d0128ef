import {
  allGather,
  ArgumentError,
  byteLength,
  concat,
  multiply,
  pad,
  reduceScatter,
  reshape,
  slice,
  type Tensor,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { lengthOf } from "./bucket.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";

export interface IdentityOptions {
  /**
   * Maximum chunk size in bytes. A bucket is sent in chunks, so that urgent chunks of other buckets can be sent in
   * between (ByteScheduler). Default: one chunk.
   */
  readonly chunkBytes?: number | undefined;
}

export interface DensePayload {
  /** Consecutive chunks of the gradient, f32. Each chunk is sent by a separate collective. */
  readonly chunks: readonly Tensor[];
}

/** Returns the begin and end index of each chunk of a vector of n elements. */
const chunkBounds = (n: number, chunkBytes: number): (readonly [begin: number, end: number])[] => {
  const most = Math.max(1, Math.min(n, Math.floor(chunkBytes / 4)));
  return Array.from(
    { length: Math.max(1, Math.ceil(n / most)) },
    (_, i) => [i * most, Math.min(n, (i + 1) * most)] as const,
  );
};

/**
 * Sends the gradient unchanged, by all-reduce of 4n bytes: dense synchronous SGD.
 *
 * In halves: reduce-scatter, then all-gather of the shards. Each chunk is padded to a multiple of P (DeAR, arXiv
 * 2302.12445).
 *
 * @throws ArgumentError if chunks are smaller than 4 bytes. Source of chunks: Peng et al. 2019 (ByteScheduler), SOSP.
 * @example
 * ```ts
 * const compressor = identityCompressor();
 * const send = (w: Tensor) => exchange({ w }, initExchange({ w }, { compressor }), { axis: "data", compressor })[0].w;
 * const sent = await evaluate(send, referenceBackend())(NdArray.from([1, -4, 3, 2]));
 * console.log(sent.toNumbers()); // [1, -4, 3, 2]
 * ```
 */
export const identityCompressor = ({ chunkBytes = Infinity }: IdentityOptions = {}): Compressor<[], DensePayload> => {
  if (!(chunkBytes >= 4))
    throw new ArgumentError(
      `identityCompressor: chunkBytes ${chunkBytes} is less than the 4 bytes of an f32; use 4 or more`,
    );
  const cut = (flat: Tensor): Tensor[] => {
    const bounds = chunkBounds(flat.shape[0]!, chunkBytes);
    return bounds.length === 1 ? [flat] : bounds.map(([begin, end]) => slice(flat, [begin], [end]));
  };
  const join = (chunks: readonly Tensor[]): Tensor => (chunks.length === 1 ? chunks[0]! : concat(chunks));
  return {
    ...defineCompressor<[], DensePayload>({
      name: "identity",
      aggregation: "sum",
      biased: false,
      scope: "tensor",
      contraction: () => 1,
      init: () => [],
      encode: (gradient, state) => ({ payload: { chunks: cut(reshape(gradient, [lengthOf(gradient)])) }, state }),
      decode: ({ chunks }, { shape }) => reshape(join(chunks), shape),
      payloadBytes: (gradient) => byteLength(gradient),
    }),
    halves: {
      begin: (gradient, state, _, { axis, collective }) => {
        const numRanks = axisSize(axis);
        const shards = cut(gradient).map((chunk) => {
          const padding = Math.ceil(chunk.shape[0]! / numRanks) * numRanks - chunk.shape[0]!;
          return reduceScatter(pad(chunk, [[0, padding]]), axis, "sum", collective);
        });
        return { pending: shards, sent: gradient, state };
      },
      finish: (pending, bucket, { axis, collective }) => {
        const bounds = chunkBounds(lengthOf(bucket), chunkBytes);
        const chunks = (pending as readonly Tensor[]).map((shard, i) =>
          slice(allGather(shard, axis, collective), [0], [bounds[i]![1] - bounds[i]![0]]),
        );
        const numRanks = axisSize(axis);
        return numRanks === 1 ? join(chunks) : multiply(join(chunks), 1 / numRanks);
      },
    },
  };
};
