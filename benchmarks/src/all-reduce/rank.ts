import { workerData } from "node:worker_threads";
import { joinWorld, type WorldConnection } from "@skein/collectives/node";
import { sizes } from "./problem.ts";

export interface RankData {
  readonly connection: WorldConnection;
  /** Where this rank's vector lies, and where its times go: one f64 per sample, all sizes one after the other. */
  readonly vector: number;
  readonly times: number;
}

const { connection, vector, times } = workerData as RankData;
const { memory, rank, worldSize } = connection;
const communicator = joinWorld(connection);
const empty = new Uint8Array(memory.buffer, 0, 0);

const barrier = (): void => communicator.wait(communicator.start({ kind: "barrier", dtype: "u8", input: empty, output: empty }));

const validate = (values: Float32Array, allReduce: () => void): void => {
  for (let i = 0; i < values.length; i++) values[i] = (i % 7) + rank;
  allReduce();
  for (let i = 0; i < values.length; i++) {
    const expected = (i % 7) * worldSize + (worldSize * (worldSize - 1)) / 2;
    if (values[i] !== expected) throw new Error(`rank ${rank}: element ${i} of ${values.length} is ${values[i]} instead of ${expected}`);
  }
};

let place = times;
for (const { bytes, samples } of sizes) {
  const region = new Uint8Array(memory.buffer, vector, bytes);
  const values = new Float32Array(memory.buffer, vector, bytes / 4);
  const allReduce = (): void => communicator.wait(communicator.start({ kind: "all-reduce", dtype: "f32", input: region, output: region }));
  validate(values, allReduce);
  values.fill(0);
  for (let warmUp = 0; warmUp < 3; warmUp++) allReduce();
  const taken = new Float64Array(memory.buffer, place, samples);
  for (let i = 0; i < samples; i++) {
    barrier();
    const begin = performance.now();
    allReduce();
    taken[i] = (performance.now() - begin) * 1000;
  }
  place += 8 * samples;
  validate(values, allReduce);
}
