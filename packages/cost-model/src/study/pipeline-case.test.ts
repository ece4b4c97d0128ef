import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chunks, schedules, times } from "../../test/moe-layers.ts";
import { layerTimeline } from "../planners/moe/layer-timeline.ts";
import { type PipelineBound, type PipelinePredicates, pipelineBound, pipelineCase } from "./pipeline-case.ts";

/** Conditions of the paper's table, row by row. A predicate with ! must be false. */
const publishedConditions: Readonly<Record<PipelineBound, readonly (readonly string[])[]>> = {
  "inter-node": [
    ["q1", "!q2", "q4"],
    ["q1", "q2", "q5"],
    ["!q1", "!q3", "q6"],
    ["!q1", "q3", "q7"],
  ],
  compute: [
    ["q1", "q2", "!q5"],
    ["!q1", "q3", "!q7"],
  ],
  "all-to-all": [["q1", "!q2", "!q4"]],
  "intra-node": [["!q1", "!q3", "!q6"]],
};

test("exactly one row of the published conditions holds for any predicates, and it is the returned case", () => {
  const names = ["q1", "q2", "q3", "q4", "q5", "q6", "q7"] as const;
  for (let bits = 0; bits < 2 ** names.length; bits++) {
    const predicates = Object.fromEntries(names.map((name, i) => [name, (bits >> i) % 2 === 1])) as PipelinePredicates;
    const holds = (condition: string): boolean =>
      condition.startsWith("!")
        ? !predicates[condition.slice(1) as keyof PipelinePredicates]
        : predicates[condition as keyof PipelinePredicates];
    const holding = Object.entries(publishedConditions)
      .filter(([, rows]) => rows.some((row) => row.every(holds)))
      .map(([bound]) => bound);
    expect(holding).toEqual([pipelineBound(predicates)]);
  }
});

describe("pipelineCase", () => {
  // Computed by hand from the published formulas, one row per case.
  test.each([
    { times: [1, 0.5, 0.2, 3], bound: "inter-node", seconds: 11, alternating: 11 },
    { times: [1, 0.5, 3, 0], bound: "compute", seconds: 15, alternating: 15 },
    { times: [1, 0.8, 0.2, 0], bound: "all-to-all", seconds: 9.6, alternating: 8.8 },
    { times: [0.5, 1, 0.2, 0], bound: "intra-node", seconds: 9, alternating: 9 },
  ] as const)("four chunks, $bound", ({ times: [allToAll, within, experts, gradientSeconds], ...expected }) => {
    const chunk = { allToAll, allGather: within, reduceScatter: within, experts };
    const schedule = { numChunks: 4, gradientSeconds };
    const { bound, seconds } = pipelineCase(chunk, schedule);
    expect(bound).toBe(expected.bound);
    expect(seconds).toBeCloseTo(expected.seconds, 12);
    expect(layerTimeline(chunk, schedule).makespanSeconds).toBeCloseTo(expected.seconds, 12);
    expect(layerTimeline(chunk, { ...schedule, intraNodeOrder: "alternating" }).makespanSeconds).toBeCloseTo(
      expected.alternating,
      12,
    );
  });

  test("equals the simulated schedule if all-gather and reduce-scatter take equally long", () => {
    const reached = new Set<PipelineBound>();
    fc.assert(
      fc.property(chunks, schedules, ({ allToAll, allGather, experts }, { numChunks, gradientSeconds }) => {
        const chunk = { allToAll, allGather, reduceScatter: allGather, experts };
        const { bound, seconds } = pipelineCase(chunk, { numChunks, gradientSeconds });
        reached.add(bound);
        expect(layerTimeline(chunk, { numChunks, gradientSeconds }).makespanSeconds).toBe(seconds);
      }),
      { numRuns: 20_000 },
    );
    expect(reached.size).toBe(4);
  });

  test("is a lower bound of the schedule otherwise, and not always its time", () => {
    let longest = 1;
    fc.assert(
      fc.property(chunks, schedules, (chunk, { numChunks, gradientSeconds }) => {
        const { seconds } = pipelineCase(chunk, { numChunks, gradientSeconds });
        const simulated = layerTimeline(chunk, { numChunks, gradientSeconds }).makespanSeconds;
        expect(simulated).toBeGreaterThanOrEqual(seconds);
        if (seconds > 0) longest = Math.max(longest, simulated / seconds);
      }),
      { numRuns: 20_000 },
    );
    expect(longest).toBeGreaterThan(2);
  });

  test("neither order within a node is always better", () => {
    const better = new Set<number>();
    fc.assert(
      fc.property(times, times, times, fc.integer({ min: 3, max: 8 }), (allToAll, within, experts, numChunks) => {
        const chunk = { allToAll, allGather: within, reduceScatter: within, experts };
        const [first, alternating] = (["gathers-first", "alternating"] as const).map(
          (intraNodeOrder) => layerTimeline(chunk, { numChunks, intraNodeOrder }).makespanSeconds,
        );
        better.add(Math.sign(first! - alternating!));
      }),
      { numRuns: 2000 },
    );
    expect([...better].toSorted()).toEqual([-1, 0, 1]);
  });
});
