// Compute thread of one rank, for any transport. Rank 0 posts a `Measurement` for each size.
import { parentPort, workerData } from "node:worker_threads";
import { joinWorld, type WorldConnection } from "@skein/collectives/node";
import type { MpiWorldConnection } from "@skein/mpi/node";
import type { Reduction } from "@skein/tensor-core";
import { type Measurement, type Size, warmUpsOf } from "./problem.ts";

export interface RankData {
  readonly connection: WorldConnection;
  readonly sizes: readonly Size[];
  /**
   * Byte offset of this rank's vector in the shared memory of the ranks. `times` is the byte offset of the measured
   * times: one f32 per timed all-reduce of a size.
   */
  readonly vector: number;
  readonly times: number;
}

const { connection, sizes, vector, times } = workerData as RankData;
const { memory, rank, worldSize } = connection;
// Over MPI this thread may call MPI itself, as in a job.
const communicator =
  "mpi" in connection
    ? (await import("@skein/mpi/node")).joinMpiWorld(connection as MpiWorldConnection)
    : joinWorld(connection);
const empty = new Uint8Array(memory.buffer, 0, 0);

const barrier = (): void =>
  communicator.wait(communicator.start({ kind: "barrier", dtype: "u8", input: empty, output: empty, awaited: true }));

const allReduce = (region: Uint8Array, reduction: Reduction): void =>
  communicator.wait(
    communicator.start({ kind: "all-reduce", dtype: "f32", reduction, input: region, output: region, awaited: true }),
  );

const validate = (region: Uint8Array): void => {
  const values = new Float32Array(region.buffer, region.byteOffset, region.byteLength / 4);
  for (let i = 0; i < values.length; i++) values[i] = (i % 7) + rank;
  allReduce(region, "sum");
  for (let i = 0; i < values.length; i++) {
    const expected = (i % 7) * worldSize + (worldSize * (worldSize - 1)) / 2;
    if (values[i] !== expected)
      throw new Error(`rank ${rank}: element ${i} of ${values.length} is ${values[i]} instead of ${expected}`);
  }
};

/** Times `taken.length` all-reduces and writes microseconds to `taken`. All ranks begin each all-reduce together. */
const time = (region: Uint8Array, taken: Float32Array): void => {
  for (let i = 0; i < taken.length; i++) {
    barrier();
    const begin = performance.now();
    allReduce(region, "sum");
    taken[i] = (performance.now() - begin) * 1000;
  }
};

// V8 optimises the code that polls for messages late. With two ranks on two cores, times reach those of a long job only
// after tens of thousands of small all-reduces.
const warmUpMilliseconds = 500;

/**
 * Returns the milliseconds since `begin`, as the maximum over all ranks, so that all ranks stop the warm-up together.
 */
const millisecondsSince = (begin: number): number => {
  const longest = new Float32Array(memory.buffer, times, 1);
  longest[0] = performance.now() - begin;
  allReduce(new Uint8Array(memory.buffer, times, 4), "max");
  return longest[0];
};

for (const size of sizes) {
  const { bytes, samples } = size;
  const region = new Uint8Array(memory.buffer, vector, bytes);
  validate(region);
  region.fill(0); // sums of zeros stay finite after any number of additions
  for (let i = 0; i < warmUpsOf(size); i++) allReduce(region, "sum");
  const taken = new Float32Array(memory.buffer, times, samples);
  const begin = performance.now();
  while (millisecondsSince(begin) < warmUpMilliseconds) time(region, taken);
  time(region, taken);
  validate(region);
  allReduce(new Uint8Array(memory.buffer, times, 4 * samples), "max");
  if (rank === 0) parentPort!.postMessage({ bytes, microseconds: Array.from(taken) } satisfies Measurement);
}
