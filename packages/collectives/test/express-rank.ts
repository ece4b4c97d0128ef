import { parentPort, workerData } from "node:worker_threads";
import type { CollectiveHandle } from "@skein/tensor-core/backend";
import { type BlockingCommunicator, joinWorld, type WorldConnection } from "../src/node.ts";

// The thread of one rank: runs programs of collectives on shared regions, and posts the final contents of the regions.

/** A collective of a group on the first elements of two regions of its lane, which may be the same region. */
export interface Call {
  readonly kind: "all-reduce" | "reduce" | "all-gather" | "barrier";
  readonly reduction: "sum" | "max";
  readonly group: number;
  /** Root of the call, modulo the size of the group. */
  readonly root: number;
  readonly lane: number;
  readonly from: number;
  readonly to: number;
  readonly n: number;
  /** Behavior by rank: milliseconds to sleep before the call, and whether to wait for the call before the next call. */
  readonly pauses: readonly number[];
  readonly waits: readonly boolean[];
}

export interface Program {
  readonly seed: number;
  readonly calls: readonly Call[];
}

export interface ExpressJob {
  /** Partitions of the world into groups. Each partition adds one group per rank. */
  readonly partitions: readonly (readonly (readonly number[])[])[];
  readonly programs: readonly Program[];
}

export interface ExpressAnswer {
  /** Regions by program, then by lane, then by region number. */
  readonly regions: readonly (readonly Float32Array[])[][];
  readonly algorithms: readonly (string | undefined)[];
  readonly error?: { readonly code: string; readonly message: string; readonly peer: number };
}

export interface ExpressRankData {
  readonly connection: WorldConnection;
  readonly job: ExpressJob;
}

export const laneCount = 4;
export const regionCount = 3;
export const regionElements = 60_000;

/**
 * Returns the initial contents of region `region` of a lane. Their sums are inexact, so that a different order of sums
 * is detected.
 */
export const operandOf = (seed: number, rank: number, lane: number, region: number): Float32Array =>
  Float32Array.from({ length: regionElements }, (_, i) =>
    Math.sin(seed + 1000 * rank + 100 * lane + 10 * region + i * 0.37),
  );

const runPrograms = ({ connection, job }: ExpressRankData): ExpressAnswer => {
  const { rank, memory } = connection;
  const world = joinWorld(connection);
  const groups: BlockingCommunicator[] = [world, ...job.partitions.map((parts, i) => world.split(parts, `group ${i}`))];
  const regions = Array.from({ length: laneCount }, (_, lane) =>
    Array.from(
      { length: regionCount },
      (__, region) =>
        new Float32Array(memory.buffer, 4 * regionElements * (lane * regionCount + region), regionElements),
    ),
  );
  const part = (lane: number, region: number, n: number): Uint8Array =>
    new Uint8Array(memory.buffer, regions[lane]![region]!.byteOffset, 4 * n);
  const clock = new Int32Array(new SharedArrayBuffer(4));
  const answers: Float32Array[][][] = [];
  const algorithms: (string | undefined)[] = [];
  for (const { seed, calls } of job.programs) {
    regions.forEach((lane, i) => lane.forEach((region, j) => region.set(operandOf(seed, rank, i, j))));
    const pending: { readonly group: BlockingCommunicator; readonly handle: CollectiveHandle }[] = [];
    for (const { kind, reduction, group: index, root, lane, from, to, n, pauses, waits } of calls) {
      const group = groups[index]!;
      if (pauses[rank]! > 0) Atomics.wait(clock, 0, 0, pauses[rank]);
      const size = kind === "barrier" ? 0 : n;
      const handle = group.start({
        kind,
        dtype: "f32",
        reduction,
        root: root % group.worldSize,
        input: part(lane, from, size),
        output: part(lane, to, kind === "all-gather" ? size * group.worldSize : size),
        priority: lane,
      });
      if (waits[rank]!) {
        group.wait(handle);
        algorithms.push(group.algorithmOf?.(handle));
      } else pending.push({ group, handle });
    }
    for (const { group, handle } of rank % 2 === 1 ? pending.toReversed() : pending) group.wait(handle);
    world.wait(world.start({ kind: "barrier", dtype: "u8", input: part(0, 0, 0), output: part(0, 0, 0) }));
    answers.push(regions.map((lane) => lane.map((region) => region.slice())));
  }
  return { regions: answers, algorithms };
};

if (parentPort !== null) {
  let answer: ExpressAnswer;
  try {
    answer = runPrograms(workerData as ExpressRankData);
  } catch (error) {
    const { code, message, peer } = error as { code?: string; message: string; peer: number };
    if (code === undefined) throw error;
    answer = { regions: [], algorithms: [], error: { code, message, peer } };
  }
  parentPort.postMessage(answer);
}
