import type { LinkSample } from "@skein/collectives";
import { allGather, allReduce, type Backend, type Communicators, jit, NdArray, SpanRecorder, type Tensor } from "@skein/tensor-core";

/** From what is nearly all start-up to a large bucket. */
const sizes: readonly number[] = [4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

const samplesEach = 3;

/**
 * Calls whose mean is one sample. A rank that comes late finds the others' messages there and waits for nothing, and so comes early to the next call and
 * waits for all the longer: over lines of 20 ms, 2 and 85 ms in turn for what takes 43.
 */
const callsEach = 4;

/**
 * Time whole collectives along an axis, as this rank sees them: from their start, which is where a profile has its gradients ready, until the result is
 * there. All ranks call it together.
 *
 * @param mostBytes of a dense vector; larger ones are not tried.
 * @returns for an all-gather, bytes are those of the result.
 */
export const measureCollectives = async (
  kind: "all-reduce" | "all-gather",
  axis: string,
  { backend, communicators, mostBytes }: { readonly backend: Backend; readonly communicators: Communicators; readonly mostBytes: number },
): Promise<LinkSample[]> => {
  const numRanks = communicators[axis]!.worldSize;
  const tracer = new SpanRecorder();
  const collective = jit((x: Tensor) => (kind === "all-reduce" ? allReduce(x, axis) : allGather(x, axis)), backend, {
    communicators,
    tracer,
  });
  const samples: LinkSample[] = [];
  try {
    for (const [i, bytes] of sizes.entries()) {
      if (i > 2 && bytes > mostBytes) break; // three sizes at least, to lay a line through
      const elements = Math.max(1, Math.floor(bytes / 4 / (kind === "all-gather" ? numRanks : 1)));
      const input = backend.upload(NdArray.zeros("f32", [elements]));
      const call = async (): Promise<number> => {
        tracer.spans.length = 0;
        backend.free(await collective(input));
        return tracer.spans.find(({ stream }) => stream === "communication")!.durationSeconds;
      };
      await call(); // meets cold caches
      for (let sample = 0; sample < samplesEach; sample++) {
        let seconds = 0;
        for (let i = 0; i < callsEach; i++) seconds += await call();
        samples.push({ bytes: 4 * elements * (kind === "all-gather" ? numRanks : 1), seconds: seconds / callsEach });
      }
      backend.free(input);
    }
  } finally {
    collective.release();
  }
  return samples;
};
