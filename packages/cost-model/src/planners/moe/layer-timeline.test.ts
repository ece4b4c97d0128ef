import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chunks, schedules } from "../../../test/moe-layers.ts";
import { simulate } from "../../simulation/simulate.ts";
import type { CollectiveTask, SimulatedTask } from "../../simulation/task.ts";
import type { ChunkSeconds } from "./layer-pass.ts";
import { type LayerSchedule, type LayerTimeline, layerTimeline } from "./layer-timeline.ts";

/** Converts the schedule to a program of one rank, because the simulator has no concept of experts. */
const simulated = (chunk: ChunkSeconds, schedule: LayerSchedule, { streams }: LayerTimeline): number => {
  const { numChunks, gradientSeconds = 0 } = schedule;
  const tasks: SimulatedTask[] = [];
  const start = (
    name: string,
    collective: CollectiveTask["collective"],
    stream: "inter-node" | "intra-node",
    seconds: number,
    after: readonly number[],
  ): number =>
    tasks.push({
      kind: "collective",
      name,
      collective,
      bytes: 0,
      axis: stream,
      phases: [{ stream, startupSeconds: seconds, transferSeconds: 0 }],
      after,
    }) - 1;
  const chunksInOrder = Array.from({ length: numChunks }, (_, i) => i);
  const dispatches = chunksInOrder.map((i) => start(`dispatch ${i}`, "all-to-all", "inter-node", chunk.allToAll, []));
  start("gradients", "all-reduce", "inter-node", gradientSeconds, []);
  const gathers: number[] = [];
  const combines: number[] = [];
  let computed = 0;
  for (const { operation, chunk: i } of streams.intraNode) {
    if (operation === "all-gather") {
      gathers.push(start(`gather ${i}`, "all-gather", "intra-node", chunk.allGather, [dispatches[i!]!]));
      continue;
    }
    // Experts run when the program reaches the task that needs their results; the order of the streams does not allow
    // an earlier time.
    for (; computed <= i!; computed++) {
      tasks.push({ kind: "wait", for: gathers[computed]! });
      tasks.push({ kind: "compute", name: `experts ${computed}`, seconds: chunk.experts });
    }
    const scatter = start(`scatter ${i}`, "reduce-scatter", "intra-node", chunk.reduceScatter, [tasks.length - 1]);
    combines.push(start(`combine ${i}`, "all-to-all", "inter-node", chunk.allToAll, [scatter]));
  }
  for (const combine of combines) tasks.push({ kind: "wait", for: combine });
  return simulate({ programs: [tasks], groups: { "inter-node": [[0]], "intra-node": [[0]] } }).stepSeconds;
};

describe("layerTimeline", () => {
  test("equals the event simulator, in both orders", () => {
    fc.assert(
      fc.property(chunks, schedules, (chunk, schedule) => {
        const timeline = layerTimeline(chunk, schedule);
        expect(timeline.makespanSeconds).toBe(simulated(chunk, schedule, timeline));
      }),
      { numRuns: 500 },
    );
  });

  test("runs each operation of each chunk once, after its inputs, and one at a time per stream", () => {
    fc.assert(
      fc.property(chunks, schedules, (chunk, schedule) => {
        const { streams } = layerTimeline(chunk, schedule);
        const spans = Object.values(streams).flat();
        const endOf = (operation: string, i: number): number =>
          spans.find((span) => span.operation === operation && span.chunk === i)!.endSeconds;
        const order = ["dispatch", "all-gather", "experts", "reduce-scatter", "combine"];
        for (const { operation, chunk: i, startSeconds } of spans)
          if (i !== undefined && operation !== "dispatch")
            expect(startSeconds).toBeGreaterThanOrEqual(endOf(order[order.indexOf(operation) - 1]!, i));
        for (const stream of Object.values(streams))
          for (const [i, { startSeconds }] of stream.entries())
            expect(startSeconds).toBeGreaterThanOrEqual(stream[i - 1]?.endSeconds ?? 0);
        const names = spans.filter(({ chunk: i }) => i !== undefined).map((span) => `${span.operation} ${span.chunk}`);
        expect(new Set(names).size).toBe(names.length);
        expect(names).toHaveLength(5 * schedule.numChunks);
      }),
      { numRuns: 200 },
    );
  });

  test("gradients are exposed only beyond the idle time between nodes", () => {
    fc.assert(
      fc.property(chunks, schedules, (chunk, schedule) => {
        const without = layerTimeline(chunk, { ...schedule, gradientSeconds: 0 }).makespanSeconds;
        expect(layerTimeline(chunk, schedule).makespanSeconds).toBe(
          Math.max(without, 2 * schedule.numChunks * chunk.allToAll + (schedule.gradientSeconds ?? 0)),
        );
      }),
      { numRuns: 1000 },
    );
  });

  test("is never below the time that each of the three streams needs", () => {
    fc.assert(
      fc.property(chunks, schedules, (chunk, schedule) => {
        const { numChunks: r, gradientSeconds = 0 } = schedule;
        const { allToAll, allGather, reduceScatter, experts } = chunk;
        expect(layerTimeline(chunk, schedule).makespanSeconds).toBeGreaterThanOrEqual(
          Math.max(
            2 * r * allToAll + gradientSeconds,
            2 * allToAll + allGather + reduceScatter + r * experts,
            2 * allToAll + r * (allGather + reduceScatter),
          ),
        );
      }),
      { numRuns: 1000 },
    );
  });

  test("one chunk without gradients is sequential", () => {
    fc.assert(
      fc.property(chunks, schedules, (chunk, { intraNodeOrder }) => {
        expect(layerTimeline(chunk, { numChunks: 1, intraNodeOrder }).makespanSeconds).toBe(
          2 * chunk.allToAll + chunk.allGather + chunk.reduceScatter + chunk.experts,
        );
      }),
    );
  });

  test("rejects invalid times and numbers of chunks", () => {
    const chunk = { allToAll: 1, allGather: 1, reduceScatter: 1, experts: 1 };
    expect(() => layerTimeline(chunk, { numChunks: 0 })).toThrow(/0 chunks, but needs a whole number from 1/);
    expect(() => layerTimeline({ ...chunk, experts: -1 }, { numChunks: 1 })).toThrow(/-1 s for experts/);
    expect(() => layerTimeline(chunk, { numChunks: 1, gradientSeconds: Infinity })).toThrow(/Infinity s for gradients/);
  });
});
