import type { LinkSample } from "@skein/collectives";
import { allGather, allReduce, type Backend, type Communicators, jit, NdArray, type Tensor } from "@skein/tensor-core";

/** From what is nearly all start-up to a large bucket. */
const sizes: readonly number[] = [4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

const repetitions = 5;

/**
 * Time whole collectives along an axis, as this rank sees them. All ranks call it together.
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
  const collective = jit((x: Tensor) => (kind === "all-reduce" ? allReduce(x, axis) : allGather(x, axis)), backend, { communicators });
  const samples: LinkSample[] = [];
  try {
    for (const [i, bytes] of sizes.entries()) {
      if (i > 2 && bytes > mostBytes) break; // three sizes at least, to lay a line through
      const elements = Math.max(1, Math.floor(bytes / 4 / (kind === "all-gather" ? numRanks : 1)));
      const input = backend.upload(NdArray.zeros("f32", [elements]));
      for (let repetition = 0; repetition <= repetitions; repetition++) {
        const began = performance.now();
        const output = await collective(input);
        const seconds = (performance.now() - began) / 1000;
        backend.free(output);
        if (repetition > 0) samples.push({ bytes: 4 * elements * (kind === "all-gather" ? numRanks : 1), seconds }); // the first one compiles
      }
      backend.free(input);
    }
  } finally {
    collective.release();
  }
  return samples;
};
