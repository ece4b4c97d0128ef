import type { LinkSample } from "@skein/collectives";
import {
  allGather,
  allToAll,
  allReduce,
  type Backend,
  broadcastFromRoot,
  type Communicators,
  InvariantError,
  jit,
  NdArray,
  reduceToRoot,
  type Span,
  SpanRecorder,
  type Tensor,
} from "@skein/tensor-core";

export type MeasuredCollective = "all-reduce" | "all-gather" | "all-to-all" | "reduce" | "broadcast";

/** Sizes in bytes at which collectives are measured, from a message dominated by startup time to a large bucket. */
const sizes: readonly number[] = [4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

const samplesEach = 3;

/**
 * Number of consecutive calls whose mean time is one timing sample. The times of single calls alternate, because a late
 * rank does not wait for messages, starts the next call early, and then waits longer. On links with a latency of 20 ms,
 * calls of 43 ms were measured as 2 and 85 ms in turn.
 */
const callsEach = 4;

/** Returns the time in seconds from the start of the first collective in `spans` to the end of the last collective. */
const spanned = (spans: readonly Span[]): number => {
  const found = spans.filter(({ track }) => track === "collectives");
  if (found.length === 0) throw new InvariantError("the backend recorded no collective");
  return (
    Math.max(...found.map(({ endSeconds }) => endSeconds)) - Math.min(...found.map(({ startSeconds }) => startSeconds))
  );
};

/**
 * Measures the time of collectives along a mesh axis on this rank, from the start of a collective until its result is
 * available. The start corresponds to the time at which a gradient is ready in a gradient profile. Must be called on
 * all ranks.
 *
 * @param maxBytes Maximum size of a dense vector in bytes. Larger sizes are skipped, but at least three sizes are
 * measured.
 * @param atOnce Number of concurrent collectives of equal size, each with its own priority. The measured time is from
 * the start of the first collective to the end of the last collective.
 * @returns bytes and seconds of each sample. For an all-gather, bytes of the result.
 */
export const measureCollectives = async (
  kind: MeasuredCollective,
  axis: string,
  {
    backend,
    communicators,
    maxBytes,
    atOnce = 1,
  }: {
    readonly backend: Backend;
    readonly communicators: Communicators;
    readonly maxBytes: number;
    readonly atOnce?: 1 | 2 | 3 | 4;
  },
): Promise<LinkSample[]> => {
  const numRanks = communicators[axis]!.worldSize;
  const spanSink = new SpanRecorder();
  const one = (x: Tensor, priority: number): Tensor => {
    switch (kind) {
      case "all-reduce":
        return allReduce(x, axis, "sum", { priority });
      case "all-gather":
        return allGather(x, axis, { priority });
      case "all-to-all":
        return allToAll(x, axis, { priority });
      case "reduce":
        return reduceToRoot(x, axis, 0, { priority });
      case "broadcast":
        // The root is the last rank, so that rank 0 waits for the data. All ranks use the times of rank 0.
        return broadcastFromRoot(x, axis, numRanks - 1, { priority });
    }
  };
  const collectives = jit((operands: readonly Tensor[]) => operands.map(one), backend, { communicators, spanSink });
  const samples: LinkSample[] = [];
  try {
    for (const [i, bytes] of sizes.entries()) {
      if (i > 2 && bytes > maxBytes) break; // at least three sizes, to fit a line
      const share = Math.max(
        1,
        Math.floor(bytes / 4 / (kind === "all-gather" || kind === "all-to-all" ? numRanks : 1)),
      );
      const elements = kind === "all-to-all" ? share * numRanks : share;
      const inputs = Array.from({ length: atOnce }, () => backend.upload(NdArray.zeros("f32", [elements])));
      const call = async (): Promise<number> => {
        spanSink.spans.length = 0;
        for (const result of await collectives(inputs)) backend.free(result);
        return spanned(spanSink.spans);
      };
      await call(); // warms up caches
      for (let sample = 0; sample < samplesEach; sample++) {
        let seconds = 0;
        for (let i = 0; i < callsEach; i++) seconds += await call();
        samples.push({ bytes: 4 * elements * (kind === "all-gather" ? numRanks : 1), seconds: seconds / callsEach });
      }
      for (const input of inputs) backend.free(input);
    }
  } finally {
    collectives.release();
  }
  return samples;
};
