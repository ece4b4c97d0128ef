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

/** From what is nearly all start-up to a large bucket. */
const sizes: readonly number[] = [4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

const samplesEach = 3;

/**
 * Calls whose mean is one sample. A rank that comes late finds the others' messages there and waits for nothing, and so
 * comes early to the next call and waits for all the longer: over lines of 20 ms, 2 and 85 ms in turn for what
 * takes 43.
 */
const callsEach = 4;

/** Seconds from the begin of the first collective to the end of the last. */
const spanned = (spans: readonly Span[]): number => {
  const found = spans.filter(({ track }) => track === "collectives");
  if (found.length === 0) throw new InvariantError("the backend recorded no collective");
  return (
    Math.max(...found.map(({ endSeconds }) => endSeconds)) - Math.min(...found.map(({ startSeconds }) => startSeconds))
  );
};

/**
 * Time whole collectives along an axis, as this rank sees them: from their start, which is where a profile has its
 * gradients ready, until the result is there. All ranks call it together.
 *
 * @param mostBytes of a dense vector; larger ones are not tried.
 * @param atOnce so many of equal size that are under way together, each with a priority of its own; from the begin of
 * the first to the end of the last.
 * @returns bytes of each; for an all-gather, those of the result.
 */
export const measureCollectives = async (
  kind: MeasuredCollective,
  axis: string,
  {
    backend,
    communicators,
    mostBytes,
    atOnce = 1,
  }: {
    readonly backend: Backend;
    readonly communicators: Communicators;
    readonly mostBytes: number;
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
        // From the last one, so that the first, whose times all agree upon, has to wait for what comes.
        return broadcastFromRoot(x, axis, numRanks - 1, { priority });
    }
  };
  const collectives = jit((operands: readonly Tensor[]) => operands.map(one), backend, { communicators, spanSink });
  const samples: LinkSample[] = [];
  try {
    for (const [i, bytes] of sizes.entries()) {
      if (i > 2 && bytes > mostBytes) break; // three sizes at least, to lay a line through
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
      await call(); // meets cold caches
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
