import { Worker } from "node:worker_threads";
import { compileWasm, createCpuBackend, createSharedMemory } from "@skein/cpu-kernels";
import { type DeviceArray, flattenTree, jit } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { createThreadWorld } from "../src/node.ts";
import type { PipelineAnswer, PipelineRankData } from "./pipeline-rank.ts";
import { batches, cutInto, numMicroBatches, oneRankPasses, oneRankStep, params } from "./pipelined-step.ts";

/** Runs the step on one rank. Returns losses, metrics by micro-batch and block, and gradients. */
const oneRank = async (module: WebAssembly.Module, isMixed: boolean): Promise<number[][]> => {
  const backend = await createCpuBackend({ memory: createSharedMemory(), module });
  const compiled = jit(oneRankStep, backend, { passes: oneRankPasses(isMixed) });
  const results = flattenTree<DeviceArray>(await compiled(params as never, batches as never)).leaves;
  return Promise.all(results.map(async (result) => (await backend.download(result)).toNumbers()));
};

test.each([2, 3, 4])("stages on %i threads match a single rank, in f32 and in mixed precision", async (worldSize) => {
  const world = createThreadWorld({
    worldSize,
    memory: createSharedMemory(),
    kernels: "none",
    timeoutMilliseconds: 60_000,
  });
  const module = await compileWasm("simd");
  const answers = await Promise.all(
    Array.from({ length: worldSize }, (_, rank) => {
      const workerData: PipelineRankData = { connection: world.connection(rank), module };
      const worker = new Worker(new URL("./pipeline-rank.ts", import.meta.url), { workerData });
      world.watch(rank, worker);
      return new Promise<PipelineAnswer>((resolve, reject) => worker.once("message", resolve).once("error", reject));
    }),
  );
  await world.close();
  expect(answers.map((answer) => ("error" in answer ? answer.error : undefined))).toEqual(answers.map(() => undefined));
  for (const [i, isMixed] of [false, true].entries()) {
    const expected = await oneRank(module, isMixed);
    const { stages, shared } = cutInto(worldSize, isMixed);
    expect(shared.map(({ path }) => path)).toContain("embedding");
    const numFigures = stages.reduce((sum, { aux }) => sum + aux.length, 0);
    const numBefore = numMicroBatches * numFigures;
    const numLeaves = expected.length - numBefore - numMicroBatches;
    const ofShared = new Map<number, readonly number[]>();
    answers.forEach((answer, rank) => {
      const stage = stages[rank]!;
      const values = "values" in answer ? answer.values[i]! : [];
      // Results are in alphabetical order of their names: figures, gradients, losses.
      stage.aux.forEach((leaf, at) => {
        for (let m = 0; m < numMicroBatches; m++)
          expect(values[m * stage.aux.length + at]).toEqual(expected[m * numFigures + leaf]);
      });
      stage.params.forEach((leaf, at) => {
        const found = values[numMicroBatches * stage.aux.length + at]!;
        expected[numBefore + leaf]!.forEach((value, e) =>
          expect(Math.abs(found[e]! - value), `rank ${rank}, leaf ${leaf}`).toBeLessThanOrEqual(isMixed ? 1e-4 : 1e-6),
        );
        if (!shared.some((one) => one.leaf === leaf)) return;
        expect(found).toEqual(ofShared.get(leaf) ?? found);
        ofShared.set(leaf, found);
      });
      if (rank === worldSize - 1) expect(values.slice(-numMicroBatches)).toEqual(expected.slice(numBefore + numLeaves));
    });
  }
});
