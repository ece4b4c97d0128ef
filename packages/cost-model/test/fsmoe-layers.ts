import { fsmoeModels, fsmoeTestbeds } from "@skein/published-measurements";
import type { LinearCollectiveModel } from "../src/index.ts";
import type { MoeLayerPass } from "../src/planners.ts";

/** Sizes of a layer of experts, with the symbols of publications. */
export interface LayerSizes {
  readonly numTokens: number;
  readonly expertsPerToken: number;
  readonly capacityFactor: number;
  readonly hidden: number;
  readonly expertHidden: number;
  readonly numProducts: number;
}

/**
 * Factors that correct the printed exponents of testbed A. The paper's table of times for testbed A matches 2.32e-8,
 * 2.34e-8 and 4.95e-7 ms per byte instead of 2.32e-6, 2.34e-7 and 4.95e-6: then all-gathers and reduce-scatters have
 * the same number of bytes by the same rule on both testbeds, and all-reduces have nearly the same bytes for both
 * models.
 */
const exponentCorrections = {
  A: { allGather: 1e-2, reduceScatter: 1e-1, allReduce: 1e-1 },
  B: { allGather: 1, reduceScatter: 1, allReduce: 1 },
} as const;

/** Returns the fit of a collective, corrected to match the paper's own table of times. */
export const correctedModel = (
  testbed: keyof typeof fsmoeTestbeds,
  collective: "allGather" | "reduceScatter" | "allReduce",
): LinearCollectiveModel => {
  const { startupSeconds, secondsPerUnit } = fsmoeTestbeds[testbed][collective];
  return { startupSeconds, secondsPerByte: secondsPerUnit * exponentCorrections[testbed][collective] };
};

/**
 * Returns a forward pass with the published fits. All-to-alls send k · f · B · L rows of 2-byte values. Within a node
 * each GPU receives the rows of all other GPUs. A shard of an expert computes the multiply-adds of all rows for its
 * fraction of the hidden width.
 */
export const publishedPass = (testbed: keyof typeof fsmoeTestbeds, sizes: LayerSizes): MoeLayerPass => {
  const { gpusPerNode, allToAll, matrixProduct } = fsmoeTestbeds[testbed];
  const numSlots = sizes.expertsPerToken * sizes.capacityFactor * sizes.numTokens;
  const bytes = 2 * numSlots * sizes.hidden;
  const within = (gpusPerNode - 1) * bytes;
  return {
    allToAll: {
      model: { startupSeconds: allToAll.startupSeconds, secondsPerByte: allToAll.secondsPerUnit },
      bytes,
    },
    allGather: { model: correctedModel(testbed, "allGather"), bytes: within },
    reduceScatter: { model: correctedModel(testbed, "reduceScatter"), bytes: within },
    experts: {
      startupSeconds: sizes.numProducts * matrixProduct.startupSeconds,
      workSeconds: sizes.numProducts * matrixProduct.secondsPerUnit * numSlots * sizes.hidden * sizes.expertHidden,
    },
  };
};

export const passOf = (testbed: keyof typeof fsmoeTestbeds, model: keyof typeof fsmoeModels): MoeLayerPass =>
  publishedPass(testbed, fsmoeModels[model]);
