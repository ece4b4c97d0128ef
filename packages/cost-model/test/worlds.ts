import { meshPartition } from "@skein/collectives";
import fc from "fast-check";
import type {
  CollectiveTask,
  CollectivePhase,
  Program,
  SimulatedWorld,
  SimulatedTask,
} from "../src/simulation/task.ts";

export const phase = (
  transferSeconds: number,
  startupSeconds = 0,
  stream: CollectivePhase["stream"] = "inter-node",
): CollectivePhase => ({
  stream,
  startupSeconds,
  transferSeconds,
});
export const compute = (name: string, seconds: number): SimulatedTask => ({ kind: "compute", name, seconds });
export const allReduce = (
  name: string,
  axis: string,
  phases: readonly CollectivePhase[],
  more: Partial<CollectiveTask> = {},
): CollectiveTask => ({
  kind: "collective",
  name,
  axis,
  collective: "all-reduce",
  bytes: 4,
  phases,
  ...more,
});
export const wait = (index: number, previous = false): SimulatedTask => ({ kind: "wait", for: index, previous });

/** A task that all ranks have in common, before it is adapted to a rank. */
interface Sketch {
  readonly what: "compute" | "data" | "tensor" | "wait";
  readonly seconds: number;
  /** Extra seconds per task, multiplied by the kind of the rank (0, 1, …). */
  readonly extra: number;
  readonly levels: number;
  readonly priority: number;
  readonly pick: number;
  readonly chained: boolean;
}

export interface WorldLimits {
  /** Maximum size of the mesh along each axis. */
  readonly most?: number;
  readonly lanes?: number;
  /**
   * Whether seconds are integers, so that every sum is exact. If false, sums are rounded, but no value is so small that
   * halving it loses bits. Default: false.
   */
  readonly whole?: boolean;
  /** Whether each rank is on its own host and there is only one axis, so that no link is shared. Default: false. */
  readonly isolated?: boolean;
}

const phasesOf = (levels: number, seconds: number): CollectivePhase[] =>
  (["intra-node", "inter-node", "intra-node"] as const)
    .slice(levels === 1 ? 1 : 0, levels === 0 ? 0 : levels === 1 ? 2 : levels)
    .map((stream, i) => ({
      stream,
      startupSeconds: i % 2 === 0 ? seconds / 4 : 0,
      transferSeconds: (seconds * (3 - i)) / 2,
    }));

/**
 * Builds the program of a rank. Waits are placed as in the sketch, each for one of the outstanding collectives. Waits
 * for the remaining collectives are in the next step, or at the end.
 */
const programOf = (sketches: readonly Sketch[], kind: number, waitsInNext: boolean): Program => {
  const tasks: SimulatedTask[] = [];
  const outstanding: number[] = [];
  const leftOver: number[] = [];
  let last = -1;
  for (const { what, seconds, extra, levels, priority, pick, chained } of sketches) {
    if (what === "compute")
      tasks.push({ kind: "compute", name: `compute ${tasks.length}`, seconds: seconds + kind * extra });
    else if (what === "wait") {
      if (outstanding.length > 0)
        tasks.push({ kind: "wait", for: outstanding.splice(pick % outstanding.length, 1)[0]! });
    } else {
      const after = chained && last !== -1 ? [last] : [];
      last = tasks.length;
      outstanding.push(last);
      const task: CollectiveTask = {
        kind: "collective",
        name: `${what} ${last} lane ${priority}`,
        axis: what,
        collective: "all-reduce",
        bytes: 8 * seconds,
        phases: phasesOf(levels, seconds),
        priority,
        startSeconds: pick % 3 === 0 ? seconds / 8 : 0,
        after,
      };
      tasks.push(task);
    }
  }
  leftOver.push(...outstanding);
  return [...tasks, ...leftOver.map((index): SimulatedTask => ({ kind: "wait", for: index, previous: waitsInNext }))];
};

/**
 * Worlds of ranks in a mesh of two axes, with difficult cases: groups of one rank, zero seconds, programs that differ
 * by host, by row of the mesh or arbitrarily, waits long after the end of the collective or in the next step, chains of
 * collectives, many concurrent collectives, hosts across groups.
 */
export const worlds = ({
  most = 4,
  lanes = 1,
  whole = false,
  isolated = false,
}: WorldLimits = {}): fc.Arbitrary<SimulatedWorld> => {
  const seconds = whole
    ? fc.nat(16).map((count) => 8 * count)
    : fc.oneof(
        fc.constant(0),
        fc.nat(2 ** 20).map((count) => count / 77_777),
      );
  const sketch = fc.record({
    what: fc.constantFrom("compute", "compute", "data", isolated ? "data" : "tensor", "data", "wait") as fc.Arbitrary<
      Sketch["what"]
    >,
    seconds,
    extra: seconds,
    levels: fc.nat(3),
    priority: fc.nat(lanes - 1),
    pick: fc.nat(5),
    chained: fc.boolean(),
  });
  const size = fc.integer({ min: 1, max: most });
  const kinds = fc.oneof(
    fc.constant(() => 0),
    fc.constant((rank: number) => rank % 2),
    fc.constant((rank: number) => Number(rank < 2)),
    fc.array(fc.nat(2), { minLength: most * most, maxLength: most * most }).map((all) => (rank: number) => all[rank]!),
  );
  return fc
    .record({
      sketches: fc.array(sketch, { maxLength: 14 }),
      mesh: fc.record({ data: size, tensor: size }),
      kinds,
      ranksPerHost: fc.integer({ min: 1, max: 5 }),
      waitsInNext: fc.boolean(),
      shared: fc.boolean(),
    })
    .map(({ sketches, mesh, kinds: kindOf, ranksPerHost, waitsInNext, shared }) => {
      const numRanks = mesh.data * mesh.tensor;
      const made = new Map<number, Program>();
      const programs = Array.from({ length: numRanks }, (_, rank) => {
        const kind = kindOf(rank);
        const program = (shared ? made.get(kind) : undefined) ?? programOf(sketches, kind, waitsInNext);
        made.set(kind, program);
        return program;
      });
      const perHost = isolated ? 1 : ranksPerHost;
      return {
        programs,
        groups: { data: meshPartition(mesh, "data"), tensor: meshPartition(mesh, "tensor") },
        hosts: Array.from({ length: Math.ceil(numRanks / perHost) }, (_, host) =>
          Array.from({ length: Math.min(perHost, numRanks - host * perHost) }, (_unused, i) => host * perHost + i),
        ),
      };
    });
};
