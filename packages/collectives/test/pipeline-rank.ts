import { parentPort, workerData } from "node:worker_threads";
import { createCpuBackend } from "@skein/cpu-kernels";
import { type DeviceArray, flattenTree, jit } from "@skein/tensor-core";
import { joinWorld, type WorldConnection } from "../src/node.ts";
import { batches, cutInto, params, rankStep } from "./pipelined-step.ts";

// Entry point of a rank's thread: runs its stage of each pipelined step two times, and posts the results of the second
// run.

export interface PipelineRankData {
  readonly connection: WorldConnection;
  readonly module: WebAssembly.Module;
}

export type PipelineAnswer = { readonly values: readonly (readonly number[])[][] } | { readonly error: string };

const { connection, module } = workerData as PipelineRankData;
const world = joinWorld(connection);

const run = async (): Promise<number[][][]> => {
  const backend = await createCpuBackend({ memory: connection.memory, module });
  const values: number[][][] = [];
  for (const isMixed of [false, true]) {
    const cut = cutInto(world.worldSize, isMixed);
    const leaves = Object.keys(params)
      .sort()
      .map((name) => params[name]!);
    const own = cut.stages[world.rank]!.params.map((leaf) => leaves[leaf]!);
    const compiled = jit(rankStep(cut), backend, { communicators: { pipeline: world } });
    for (let round = 0; round < 2; round++) {
      const results = flattenTree<DeviceArray>(await compiled(own as never, batches as never)).leaves;
      const numbers = await Promise.all(results.map(async (result) => (await backend.download(result)).toNumbers()));
      for (const result of new Set(results)) backend.free(result);
      if (round === 1) values.push(numbers);
    }
    compiled.release();
  }
  return values;
};

const post = (answer: PipelineAnswer): void => parentPort!.postMessage(answer);
run().then(
  (values) => post({ values }),
  (error: unknown) => post({ error: (error as Error).stack ?? String(error) }),
);
