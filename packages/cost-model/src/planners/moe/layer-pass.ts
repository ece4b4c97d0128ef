import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";

/**
 * A collective of an expert layer without chunks: its time model and its bytes. With r chunks, each chunk sends 1/r of
 * the bytes.
 */
export interface LayerCollective {
  readonly model: CollectiveModel;
  readonly bytes: number;
}

/**
 * One pass, forward or backward, over an expert layer. Each expert is sharded over the ranks of a node, and experts are
 * distributed over nodes.
 */
export interface MoeLayerPass {
  /** All-to-all between nodes, used for the dispatch and for the combine. */
  readonly allToAll: LayerCollective;
  /** All-gather within a node, which sends tokens to all shards of their expert. */
  readonly allGather: LayerCollective;
  /** Reduce-scatter within a node, which sums the results of an expert's shards. */
  readonly reduceScatter: LayerCollective;
  /** Seconds of the experts: `startupSeconds` per chunk, and `workSeconds`, which are divided among the chunks. */
  readonly experts: { readonly startupSeconds: number; readonly workSeconds: number };
}

/** Seconds of each operation on one chunk of tokens. */
export interface ChunkSeconds {
  /** Seconds of one all-to-all; dispatch and combine take equally long. */
  readonly allToAll: number;
  readonly allGather: number;
  readonly reduceScatter: number;
  readonly experts: number;
}

/** Checks a number of chunks. @throws ArgumentError unless the number is a positive integer. */
export const checkNumChunks = (numChunks: number): void => {
  if (!(Number.isSafeInteger(numChunks) && numChunks >= 1))
    throw new ArgumentError(
      `a layer of experts has ${numChunks} chunks, but needs a whole number from 1; use 1 for no pipeline`,
    );
};

/** Checks a time. @throws ArgumentError if the time is negative or infinite. */
export const checkSeconds = (name: string, seconds: number): void => {
  if (!(seconds >= 0 && Number.isFinite(seconds)))
    throw new ArgumentError(
      `a layer of experts has ${seconds} s for ${name}, but times must be finite and not negative; measure the layer again`,
    );
};

/**
 * Computes the seconds of each operation on one of r equal chunks: t(r) = a + b · n / r for a collective of n bytes,
 * start-up + work / r for the experts.
 *
 * @throws ArgumentError if the number of chunks is not a positive integer, or a value is impossible.
 *
 * Source: the performance model of FSMoE, ASPLOS 2025.
 */
export const chunkSeconds = (pass: MoeLayerPass, numChunks: number): ChunkSeconds => {
  checkNumChunks(numChunks);
  const { startupSeconds, workSeconds } = pass.experts;
  checkSeconds("the start-up of experts", startupSeconds);
  checkSeconds("the work of experts", workSeconds);
  const collective = ({ model, bytes }: LayerCollective): number => collectiveSeconds(model, bytes / numChunks);
  return {
    allToAll: collective(pass.allToAll),
    allGather: collective(pass.allGather),
    reduceScatter: collective(pass.reduceScatter),
    experts: startupSeconds + workSeconds / numChunks,
  };
};

/**
 * Estimates the backward pass of a layer from its forward pass. All-gather and reduce-scatter swap their bytes. Experts
 * take twice as long, because each product has two gradients.
 *
 * Source: FSMoE, ASPLOS 2025, which measured 1.9 to 2.1 times the forward time for experts.
 */
export const backwardOf = ({ allToAll, allGather, reduceScatter, experts }: MoeLayerPass): MoeLayerPass => ({
  allToAll,
  allGather: { model: allGather.model, bytes: reduceScatter.bytes },
  reduceScatter: { model: reduceScatter.model, bytes: allGather.bytes },
  experts: { startupSeconds: 2 * experts.startupSeconds, workSeconds: 2 * experts.workSeconds },
});
