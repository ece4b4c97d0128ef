// All-reduce between two thread ranks through their communicators; prints a line of JSON for each size.
import { Worker } from "node:worker_threads";
import { createThreadWorld } from "@skein/collectives/node";
import { compileWasm, detectBuild } from "@skein/cpu-kernels";
import { type Measurement, sizes } from "./problem.ts";
import type { RankData } from "./rank.ts";

const worldSize = 2;
const timesBytes = 2 ** 16;
const largest = Math.max(...sizes.map(({ bytes }) => bytes));
const memory = new WebAssembly.Memory({ initial: (worldSize * (largest + timesBytes)) / 65_536, maximum: 65_536, shared: true });
const timesOf = (rank: number): number => worldSize * largest + rank * timesBytes;
const world = createThreadWorld({ worldSize, memory, kernels: await compileWasm(await detectBuild()) });

await Promise.all(
  Array.from({ length: worldSize }, (_, rank) => {
    const workerData: RankData = { connection: world.connection(rank), vector: rank * largest, times: timesOf(rank) };
    const worker = new Worker(new URL("./rank.ts", import.meta.url), { workerData });
    world.watch(rank, worker);
    return new Promise((resolve, reject) => worker.once("exit", resolve).once("error", reject));
  }),
);
await world.close();

let place = 0;
for (const { bytes, samples } of sizes) {
  const ranks = Array.from({ length: worldSize }, (_, rank) => new Float64Array(memory.buffer, timesOf(rank) + place, samples));
  const measurement: Measurement = {
    bytes,
    microseconds: Array.from({ length: samples }, (_, i) => Math.max(...ranks.map((times) => times[i]!))),
  };
  process.stdout.write(`${JSON.stringify(measurement)}\n`);
  place += 8 * samples;
}
