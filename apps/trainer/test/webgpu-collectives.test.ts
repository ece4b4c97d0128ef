import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { createThreadWorld } from "@skein/collectives/node";
import { Arena, createSharedMemory } from "@skein/cpu-kernels";
import { trace } from "@skein/tensor-core";
import { interpretWorld } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { arenaHostMemory } from "../src/backend/backend.ts";
import { hasAdapter } from "./adapter.ts";
import { operandOf, worldProgram } from "./all-reduce-rank.ts";

const worldSize = 2;

describe.skipIf(!hasAdapter)("ranks with a WebGPU device each", () => {
  test("reduce and gather through thread communicators with the results of the reference", async () => {
    const operands = Array.from({ length: worldSize }, (_, rank) => operandOf(rank));
    const { graph } = trace(worldProgram, [operands[0]] as never, { mesh: { data: worldSize } });
    const expected = interpretWorld(
      graph,
      operands.map((array) => [
        { spec: { dtype: array.dtype, shape: array.shape }, data: Float64Array.from(array.toNumbers()) },
      ]),
    ).map((outputs) => outputs.map(({ data }) => [...data]));
    const world = createThreadWorld({ worldSize, memory: createSharedMemory(64 * 2 ** 20), kernels: "none" });
    const answers = await Promise.all(
      operands.map((_, rank) => {
        const worker = new Worker(fileURLToPath(new URL("./all-reduce-rank.ts", import.meta.url)), {
          workerData: world.connection(rank),
        });
        world.watch(rank, worker);
        return new Promise<number[][][]>((resolve, reject) => worker.once("message", resolve).once("error", reject));
      }),
    );
    await world.close();
    answers.forEach((runs, rank) => {
      for (const run of runs) expect(run).toEqual(expected[rank]);
    });
  });
});

describe("host memory in an arena", () => {
  test("lies in shared memory, and is reused once released", () => {
    const arena = new Arena(createSharedMemory(16 * 2 ** 20));
    const memory = arenaHostMemory(arena);
    const first = memory.allocate(1000);
    expect(first.buffer).toBe(arena.memory.buffer);
    expect(first.byteLength).toBe(1000);
    memory.release(first);
    expect(arena.bytesInUse).toBe(0);
    expect(memory.allocate(1000).byteOffset).toBe(first.byteOffset);
  });
});
