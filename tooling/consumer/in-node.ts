// What a program uses of us that runs in Node only.
import { findBlas, openBlas } from "@skein/blas/node";
import { createThreadWorld, joinWorld, type ThreadWorld } from "@skein/collectives/node";
import { createSharedMemory } from "@skein/cpu-kernels";
import { loadMnist, Prefetcher } from "@skein/data/node";
import { fileChoiceStore, openNodeGpu } from "@skein/gpu-kernels/node";
import { createMpiWorld } from "@skein/mpi/node";

export const openWorld = (): ThreadWorld =>
  createThreadWorld({ worldSize: 1, memory: createSharedMemory(), kernels: "none" });
export const rankOf = (world: ThreadWorld): number => joinWorld(world.connection(0)).rank;
export const prefetch = (): Prefetcher =>
  new Prefetcher(loadMnist({ from: import.meta.url }).train, { batchSize: 4, seed: 1, rank: 0, worldSize: 1 });

export { createMpiWorld, fileChoiceStore, findBlas, openBlas, openNodeGpu };
