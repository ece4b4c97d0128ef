import { Worker } from "node:worker_threads";
import type { WorldConnection } from "@skein/collectives/node";
import { conditionsHere } from "./conditions.ts";
import type { Measurement, Size } from "./problem.ts";
import type { RankData } from "./rank.ts";

const pageBytes = 65_536;
const inPages = (bytes: number): number => Math.ceil(bytes / pageBytes);

/**
 * Returns the sizes in bytes of one rank's memory region: its vector, and the whole region including the times after
 * the vector.
 */
const partOf = (sizes: readonly Size[]): { readonly vector: number; readonly whole: number } => {
  const vector = Math.max(...sizes.map(({ bytes }) => bytes));
  return { vector, whole: pageBytes * inPages(vector + 4 * Math.max(...sizes.map(({ samples }) => samples))) };
};

/** Returns memory for `count` ranks of one process. The memory may grow for messages. */
export const rankMemory = (count: number, sizes: readonly Size[]): WebAssembly.Memory =>
  new WebAssembly.Memory({ initial: inPages(count * partOf(sizes).whole), maximum: 65_536, shared: true });

/** Communication between the ranks of a run, as implemented for threads, processes and MPI. */
interface World {
  connection(rank: number): WorldConnection;
  watch(rank: number, worker: Worker): void;
}

/**
 * Runs the ranks of this process, one thread each. Prints the conditions of rank 0 as a line of JSON, then one line per
 * size with its measurement.
 */
export const runRanks = async (world: World, ranks: readonly number[], sizes: readonly Size[]): Promise<void> => {
  const { vector, whole } = partOf(sizes);
  if (ranks.includes(0)) process.stdout.write(`${JSON.stringify(conditionsHere())}\n`);
  await Promise.all(
    ranks.map((rank, i) => {
      const workerData: RankData = {
        connection: world.connection(rank),
        sizes,
        vector: i * whole,
        times: i * whole + vector,
      };
      const worker = new Worker(new URL("./rank.ts", import.meta.url), { workerData });
      world.watch(rank, worker);
      worker.on("message", (measurement: Measurement) => process.stdout.write(`${JSON.stringify(measurement)}\n`));
      return new Promise<void>((resolve, reject) => worker.once("exit", () => resolve()).once("error", reject));
    }),
  );
};
