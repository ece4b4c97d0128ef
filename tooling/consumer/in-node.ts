// Uses the exports of our packages that run only in Node.
import { findBlas, openBlas } from "@skein/blas/node";
import { createThreadWorld, joinWorld, type ThreadWorld } from "@skein/collectives/node";
import { createSharedMemory } from "@skein/cpu-kernels";
import { loadMnist, Prefetcher } from "@skein/data/node";
import { fileChoiceStore, openNodeGpu } from "@skein/gpu-kernels/node";
import type { LlamaParams } from "@skein/models";
import { createMpiWorld } from "@skein/mpi/node";
import { loadPretrained, savePretrained } from "@skein/pretrained/node";
import type { NdArray } from "@skein/tensor-core";

export const openWorld = (): ThreadWorld =>
  createThreadWorld({ worldSize: 1, memory: createSharedMemory(), kernels: "none" });
export const rankOf = (world: ThreadWorld): number => joinWorld(world.connection(0)).rank;
export const prefetch = (): Prefetcher =>
  new Prefetcher(loadMnist({ from: import.meta.url }).train, { batchSize: 4, seed: 1, rank: 0, worldSize: 1 });
export const embeddingOf = async (folder: string): Promise<NdArray> => {
  const { params, ...rest } = await loadPretrained<LlamaParams, object>(folder);
  await savePretrained(`${folder}-copy`, { ...rest, params }, { dtype: "bf16" });
  return params.embedding_VD;
};

export { createMpiWorld, fileChoiceStore, findBlas, openBlas, openNodeGpu };
