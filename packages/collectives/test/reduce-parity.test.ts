import { Worker } from "node:worker_threads";
import { compileWasm, createSharedMemory } from "@skein/cpu-kernels";
import { trace } from "@skein/tensor-core";
import { interpretWorld } from "@skein/tensor-core/backend";
import { beforeAll, describe, expect, test } from "vitest";
import { createProcessWorld, createThreadWorld, randomSecret, type WorldConnection } from "../src/node.ts";
import {
  operandOf,
  type ReduceAnswer,
  type ReduceCase,
  type ReduceRankData,
  reducesTo,
  worldSize,
} from "./reduce-rank.ts";

const ranks = Array.from({ length: worldSize }, (_, rank) => rank);
// Sizes that fit into exchange parts, sizes of express requests, and larger sizes.
const sizes = [0, 1, 37, 9001, 20_011];
const cases: ReduceCase[] = (["exact", "rough"] as const).flatMap((values) =>
  sizes.map((n, i) => ({ n, root: (i + (values === "rough" ? 2 : 0)) % worldSize, values })),
);

/** Returns the results of all rank threads. */
const answersOf = async (connections: readonly WorldConnection[]): Promise<ReduceAnswer[]> => {
  const module = await compileWasm("simd");
  return Promise.all(
    connections.map((connection) => {
      const workerData: ReduceRankData = { connection, module, cases };
      const worker = new Worker(new URL("./reduce-rank.ts", import.meta.url), { workerData });
      return new Promise<ReduceAnswer>((resolve, reject) => worker.once("message", resolve).once("error", reject));
    }),
  );
};

const onThreads = async (): Promise<ReduceAnswer[]> => {
  const world = createThreadWorld({ worldSize, memory: createSharedMemory(), kernels: "none" });
  try {
    return await answersOf(ranks.map((rank) => world.connection(rank)));
  } finally {
    await world.close();
  }
};

/** Runs a world with a process world per rank, connected by TCP, with or without express connections. */
const overTcp = async (settings: { readonly codec?: "always" }): Promise<ReduceAnswer[]> => {
  const secret = randomSecret();
  const worlds = await Promise.all(
    ranks.map((rank) =>
      createProcessWorld({
        worldSize,
        ranks: [rank],
        memory: createSharedMemory(),
        kernels: "none",
        job: "test",
        build: "1",
        secret,
        ...settings,
      }),
    ),
  );
  try {
    const roster = worlds.map(({ addresses }, rank) => ({ ...addresses[0]!, rank, process: rank, hostName: "here" }));
    await Promise.all(worlds.map((world) => world.connect(roster)));
    return await answersOf(worlds.map((world, rank) => world.connection(rank)));
  } finally {
    await Promise.all(worlds.map((world) => world.close()));
  }
};

describe("a graph that reduces to a root", () => {
  let threads: ReduceAnswer[];
  beforeAll(async () => {
    threads = await onThreads();
  }, 60_000);

  test("matches the reference on threads, including the gradient", () => {
    expect(threads.map((answer) => ("error" in answer ? answer.error : undefined))).toEqual(ranks.map(() => undefined));
    cases.forEach((one, i) => {
      if (one.values === "rough") return;
      const inputs = ranks.map((rank) => operandOf(one, rank));
      const { graph } = trace(reducesTo(one.root), [inputs[0]!] as never, { mesh: { data: worldSize } });
      const expected = interpretWorld(
        graph,
        inputs.map((array) => [
          { spec: { dtype: array.dtype, shape: array.shape }, data: Float64Array.from(array.toNumbers()) },
        ]),
      );
      threads.forEach((answer, rank) => {
        const results = "results" in answer ? answer.results[i]! : [];
        const [total, , gradient] = expected[rank]!.map(({ data }) => [...data]);
        expect([...results[0]!], `sum of ${one.n} at ${one.root} on rank ${rank}`).toEqual(total);
        expect([...results[2]!], `gradient of ${one.n} at ${one.root} on rank ${rank}`).toEqual(gradient);
        if (one.n > 0) expect(gradient!.some((value) => value !== 0)).toBe(true);
      });
    });
  });

  test.each([{}, { codec: "always" }] as const)(
    "gives over TCP, with %j, the same bits as on threads",
    async (settings) => {
      expect(await overTcp(settings)).toEqual(threads);
    },
    60_000,
  );
});
