import { medianBy } from "@skein/measuring";
import { stepsOf, timelineOf, worldSeconds, worldSteps } from "@skein/report";
import { describe, expect, test } from "vitest";
import { collectiveRows } from "./collective-rows.ts";
import { madeUpProgram, madeUpRun, span } from "./made-up-run.ts";
import { operatorRows } from "./operator-rows.ts";

describe("steps of a run", () => {
  test("contain the spans that begin within them, and none between steps", () => {
    const steps = worldSteps(madeUpRun(2));
    expect(steps.map((ranks) => ranks.map(({ rank, number, spans }) => [rank, number, spans.length]))).toEqual([
      [
        [0, 1, 7],
        [1, 1, 7],
      ],
      [
        [0, 2, 7],
        [1, 2, 7],
      ],
      [
        [0, 3, 7],
        [1, 3, 7],
      ],
    ]);
    expect(steps.flat().some(({ spans }) => spans.some(({ name }) => name.startsWith("save")))).toBe(false);
  });

  test("that not all ranks completed are left out, as in a truncated trace", () => {
    const [first, second] = madeUpRun(2);
    const cut = { ...second!, spans: second!.spans.filter(({ startSeconds }) => startSeconds < 0.024) };
    expect(worldSteps([first!, cut]).map((ranks) => ranks[0]!.number)).toEqual([1, 2]);
  });

  test("spans may come in any order", () => {
    const [rank] = madeUpRun(1);
    const sets = (spans: typeof rank): unknown => stepsOf(spans!).map((step) => [step.number, new Set(step.spans)]);
    expect(sets({ ...rank!, spans: rank!.spans.toReversed() })).toEqual(sets(rank));
  });

  test("the median step is shown, from its earliest begin", () => {
    const steps = worldSteps(madeUpRun(2));
    const slow = steps[1]!.map((one) => ({ ...one, whole: { ...one.whole, endSeconds: one.whole.endSeconds + 1 } }));
    const quick = steps[2]!.map((one) => ({
      ...one,
      whole: { ...one.whole, endSeconds: one.whole.endSeconds - 0.001 },
    }));
    const middle = medianBy([steps[0]!, slow, quick], worldSeconds);
    expect(middle).toBe(steps[0]);
    expect(worldSeconds(slow)).toBeCloseTo(1.01, 9);
    const shown = timelineOf(steps[2]!);
    expect(Math.min(...shown.flatMap(({ spans }) => spans.map(({ startSeconds }) => startSeconds)))).toBe(0);
    expect(shown[1]!.spans.find(({ name }) => name === "fused update")!.startSeconds).toBeCloseTo(0.009, 9);
  });
});

describe("rows of operators", () => {
  const rows = operatorRows(worldSteps(madeUpRun(2)), madeUpProgram, {
    shares: new Map([
      ["matmul layer", 0.3],
      ["fused update", 0.05],
    ]),
    inKernelSeconds: 0,
  });

  test("add up the calls in a scope, on the slowest rank, largest first", () => {
    expect(
      rows.map(({ operator, scope, phase, calls, seconds }) => [
        operator,
        scope,
        phase,
        calls,
        Number(seconds.median.toFixed(6)),
      ]),
    ).toEqual([
      ["matmul", "layer", "forward", 1, 0.003], // rank 1
      ["matmul", "layer", "backward", 2, 0.003],
      ["fused", "update", "update", 1, 0.0005],
    ]);
    expect(rows.map(({ share }) => Number(share.toFixed(6)))).toEqual([0.3, 0, 0.05]);
  });

  test("have the work and the predictions of all nodes of their name", () => {
    expect(
      rows.map(({ flops, bytes, predictedSeconds, rooflineSeconds }) => [
        flops,
        bytes,
        predictedSeconds,
        rooflineSeconds,
      ]),
    ).toEqual([
      [4e6, 1000, 0.002, 0.001],
      [6e6, 2000, 0.004, 0.002],
      [100, 1e6, 0.002, 0.001],
    ]);
  });

  test("subtract the cost of recording each call", () => {
    const less = operatorRows(worldSteps(madeUpRun(1)), madeUpProgram, { shares: new Map(), inKernelSeconds: 1e-4 });
    const of = (phase: string): number => less.find((row) => row.phase === phase)!.seconds.median;
    expect(of("forward")).toBeCloseTo(0.002 - 1e-4, 9);
    expect(of("backward")).toBeCloseTo(0.003 - 2e-4, 9);
  });

  test("an operator that is not in the program is shown without work", () => {
    const [rank] = madeUpRun(1);
    const odd = { ...rank!, spans: [...rank!.spans, span("compute", "shader-of-yours", 1, 2)] };
    const row = operatorRows(worldSteps([odd]), madeUpProgram, { shares: new Map(), inKernelSeconds: 0 }).find(
      ({ operator }) => operator === "shader-of-yours",
    )!;
    expect(row).toMatchObject({ scope: "", phase: "other" });
    for (const unknown of ["flops", "bytes", "predictedSeconds"]) expect(row).not.toHaveProperty(unknown);
  });
});

test("rows of collectives have their duration and the longest wait of a rank", () => {
  const [row, ...others] = collectiveRows(worldSteps(madeUpRun(3)), madeUpProgram);
  expect(others).toEqual([]);
  expect(row).toMatchObject({
    name: "all-reduce exchange-0",
    kind: "all-reduce",
    axis: "data",
    bytes: 400,
    predictedSeconds: 0.004,
  });
  expect(row!.seconds.median).toBeCloseTo(0.003, 9);
  expect(row!.exposedSeconds.median).toBeCloseTo(0.003, 9);
});
