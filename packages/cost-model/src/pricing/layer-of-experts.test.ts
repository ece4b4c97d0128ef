import { meshPartition } from "@skein/collectives";
import { allGather, allToAll, matmul, reduceScatter, type Tensor, trace } from "@skein/tensor-core";
import { optimize, planMemory } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { madeUpDevice } from "../../test/made-up-device.ts";
import type { ChunkSeconds } from "../planners/moe/layer-pass.ts";
import { type IntraNodeOrder, layerTimeline } from "../planners/moe/layer-timeline.ts";
import { type SimulatedStep, simulate } from "../simulation/simulate.ts";
import { collectivePricers } from "./collective-price.ts";
import { type StepProgram, stepProgram } from "./step-program.ts";
import { stepTasks } from "./step-tasks.ts";

const [hosts, width, rows] = [2, 16, 64];

/** Operations of a chunk that communicate, in the order in which they are traced. */
const operations = ["dispatch", "all-gather", "reduce-scatter", "combine"] as const;
/** A collective of one chunk: operation and chunk number. */
type Sent = readonly [operation: (typeof operations)[number], chunk: number];

interface Layer {
  readonly numChunks: number;
  /** Number of ranks per host; they share each expert. */
  readonly inside: number;
  /** Order in which the collectives start. */
  readonly order: readonly Sent[];
  /** Priorities of collectives between hosts and of collectives within hosts. */
  readonly priorities: readonly [number, number];
  readonly withinMicroseconds: number;
  readonly acrossMicroseconds: number;
  /** Transfer time within a host, in microseconds per megabyte. */
  readonly transferMicroseconds: number;
  readonly gigaflopsPerSecond: number;
}

const each = (operation: Sent[0], numChunks: number): readonly Sent[] =>
  Array.from({ length: numChunks }, (_, chunk): Sent => [operation, chunk]);

/** Returns one of the two orders of `layerTimeline`. */
const namedOrder = (name: IntraNodeOrder, numChunks: number): readonly Sent[] => {
  const gathers = each("all-gather", numChunks);
  const scatters = each("reduce-scatter", numChunks);
  const within =
    name === "gathers-first"
      ? [...gathers, ...scatters]
      : [gathers[0]!, ...scatters.flatMap((scatter, i) => [...gathers.slice(i + 1, i + 2), scatter])];
  return [...each("dispatch", numChunks), ...within, ...each("combine", numChunks)];
};

const links = ({ withinMicroseconds, acrossMicroseconds, transferMicroseconds }: Layer) => {
  const secondsPerByte = 1e-12 * transferMicroseconds;
  return {
    within: { secondsPerMessage: 1e-6 * withinMicroseconds, secondsPerByte },
    across: { secondsPerMessage: 1e-6 * acrossMicroseconds, secondsPerByte: 3 * secondsPerByte },
    reduceSecondsPerByte: 0,
  };
};

/** Traces, compiles, prices and simulates a layer on two hosts. */
const priced = (layer: Layer): { readonly program: StepProgram; readonly simulated: SimulatedStep } => {
  const { numChunks, inside, order, priorities } = layer;
  const mesh = { hosts, inside };
  const forward = (w: Tensor, ...chunks: Tensor[]): Tensor[] =>
    chunks.map((x) => {
      const [between, within] = priorities.map((priority) => ({ priority }));
      const x_SD = allGather(allToAll(x, "hosts", between), "inside", within);
      return allToAll(reduceScatter(matmul(x_SD, w), "inside", "sum", within), "hosts", between);
    });
  const specs = [
    [width, width],
    ...Array.from({ length: numChunks }, () => [Math.ceil(rows / numChunks / 4) * 4, width]),
  ];
  const { graph } = trace(forward as never, specs.map((shape) => ({ dtype: "f32", shape })) as never, { mesh });
  const positions = order.map(([operation, chunk]) =>
    inside === 1
      ? 2 * chunk + (operation === "dispatch" ? 0 : 1)
      : operations.length * chunk + operations.indexOf(operation),
  );
  const ready = optimize(graph, { schedule: positions });
  const world = { worldSize: 2, sharesMemory: false, link: links(layer) };
  const program = stepProgram(
    { graph: ready, settled: planMemory(ready).settled },
    {
      device: madeUpDevice({ kernelStartSeconds: 0, flopsPerSecond: { f32: 1e9 * layer.gigaflopsPerSecond } }),
      collectives: collectivePricers({
        hosts: { ...world, worldSize: hosts, hosts: [[0], [1]] },
        inside: { ...world, worldSize: inside, hosts: [Array.from({ length: inside }, (_, rank) => rank)] },
      }),
    },
  );
  const tasks = stepTasks(program);
  const numRanks = hosts * inside;
  const simulated = simulate({
    programs: Array.from({ length: numRanks }, () => tasks),
    groups: { hosts: meshPartition(mesh, "hosts"), inside: meshPartition(mesh, "inside") },
    hosts: Array.from({ length: hosts }, (_, host) => Array.from({ length: inside }, (_rank, i) => host * inside + i)),
  });
  return { program, simulated };
};

/**
 * Returns the seconds of each operation of a chunk. Groups over hosts share the links of the hosts; groups within a
 * host share no link.
 */
const chunkSeconds = ({ inside }: Layer, program: StepProgram): ChunkSeconds => {
  const sum = (kind: string, flows: number): number => {
    const found = program.find((step) => step.kind === "start" && step.collective === kind);
    if (found?.kind !== "start") return 0;
    return found.price.phases.reduce(
      (seconds, { startupSeconds, transferSeconds }) => seconds + startupSeconds + flows * transferSeconds,
      0,
    );
  };
  const experts = program.find((step) => step.kind === "kernel");
  return {
    allToAll: sum("all-to-all", inside),
    allGather: sum("all-gather", 1),
    reduceScatter: sum("reduce-scatter", 1),
    experts: experts?.kind === "kernel" ? experts.price.seconds : 0,
  };
};

/**
 * Computes the expected seconds with two streams of collectives, where a rank starts each collective when its program
 * reaches it.
 */
const expectedSeconds = ({ numChunks, order, inside }: Layer, chunk: ChunkSeconds): number => {
  const ends = new Map<string, number>();
  let [computed, between, within] = [0, 0, 0];
  const endOf = (operation: Sent[0], i: number): number => ends.get(`${operation} ${i}`)!;
  for (const [operation, i] of order) {
    const before = operations[operations.indexOf(operation) - 1];
    if (inside > 1 && before !== undefined) computed = Math.max(computed, endOf(before, i));
    if (inside === 1 && operation === "combine") computed = Math.max(computed, endOf("dispatch", i));
    if (operation === (inside === 1 ? "combine" : "reduce-scatter")) computed += chunk.experts;
    if (operation === "dispatch" || operation === "combine") between = Math.max(between, computed) + chunk.allToAll;
    else within = Math.max(within, computed) + (operation === "all-gather" ? chunk.allGather : chunk.reduceScatter);
    ends.set(`${operation} ${i}`, operation === "dispatch" || operation === "combine" ? between : within);
  }
  return Math.max(computed, ...each("combine", numChunks).map(([, i]) => endOf("combine", i)));
};

const layers = (inside: number): fc.Arbitrary<Layer> =>
  fc
    .record({
      numChunks: fc.integer({ min: 1, max: 5 }),
      priorities: fc.constantFrom([3, 2] as const, [0, 0] as const),
      withinMicroseconds: fc.nat(30),
      acrossMicroseconds: fc.nat(30),
      transferMicroseconds: fc.nat(9000),
      gigaflopsPerSecond: fc.constantFrom(0.5, 2, 10, 100),
      keys: fc.array(fc.nat(99), { minLength: 20, maxLength: 20 }),
    })
    .map(({ keys, ...layer }) => {
      // Any order of collectives in which the collectives of each chunk keep their order.
      const chunks = Array.from({ length: layer.numChunks }, (_, chunk) =>
        operations
          .filter((operation) => inside > 1 || operation === "dispatch" || operation === "combine")
          .map((operation): Sent => [operation, chunk]),
      );
      const order: Sent[] = [];
      for (let key = 0; chunks.some(({ length }) => length > 0); key++) {
        const left = chunks.filter(({ length }) => length > 0);
        order.push(left[keys[key % keys.length]! % left.length]!.shift()!);
      }
      return { ...layer, inside, order };
    });

const expectSeconds = (actual: number, expected: number): void =>
  expect(Math.abs(actual - expected)).toBeLessThanOrEqual(1e-9 * expected);

describe("a layer of experts over two hosts, traced and simulated", () => {
  test("has collectives within hosts and between hosts on separate streams, in any order and lanes", () => {
    fc.assert(
      fc.property(layers(2), (layer) => {
        const { program, simulated } = priced(layer);
        expectSeconds(simulated.stepSeconds, expectedSeconds(layer, chunkSeconds(layer, program)));
        const streams = new Set(
          simulated.collectives.flatMap(({ axis, phases }) => phases.map(({ stream }) => `${axis} ${stream}`)),
        );
        expect([...streams].filter((stream) => !["hosts inter-node", "inside intra-node"].includes(stream))).toEqual(
          [],
        );
      }),
      { numRuns: 100 },
    );
  });

  test("takes the time of the timeline with one rank per host", () => {
    fc.assert(
      fc.property(layers(1), (layer) => {
        const order = [...each("dispatch", layer.numChunks), ...each("combine", layer.numChunks)];
        const { program, simulated } = priced({ ...layer, order });
        const { makespanSeconds } = layerTimeline(chunkSeconds(layer, program), layer);
        expectSeconds(simulated.stepSeconds, makespanSeconds);
      }),
      { numRuns: 50 },
    );
  });

  test.each(["gathers-first", "alternating"] as const)(
    "takes at least the time of the timeline, %s",
    (intraNodeOrder) => {
      fc.assert(
        fc.property(layers(2), (layer) => {
          const { numChunks } = layer;
          const { program, simulated } = priced({ ...layer, order: namedOrder(intraNodeOrder, numChunks) });
          const { makespanSeconds } = layerTimeline(chunkSeconds(layer, program), { numChunks, intraNodeOrder });
          // With several chunks, the program may start the next collective of a chunk late, because it first waits for
          // another chunk.
          if (numChunks === 1) expectSeconds(simulated.stepSeconds, makespanSeconds);
          else expect(simulated.stepSeconds).toBeGreaterThanOrEqual(makespanSeconds * (1 - 1e-9));
        }),
        { numRuns: 50 },
      );
    },
  );
});
