import { csvOf, parseReport, reportPage, terminalReport, worldSteps } from "@skein/report";
import { exp, matmul, sum, type Tensor, trace } from "@skein/tensor-core";
import { optimize, planMemory } from "@skein/tensor-core/backend";
import { expect, test } from "vitest";
import type { ComputeDevice } from "@skein/cost-model/hardware";
import { buildReport } from "../src/profile/build-report.ts";
import { madeUpProgram, madeUpRun } from "../src/profile/made-up-run.ts";

// Golden files show changed values in reviews. To write new files, run
// `vitest run apps/profiler/test/golden.test.ts -u`.

const device = { name: "a processor", flopsPerSecond: { f32: 4e9 }, memoryBytesPerSecond: 1e9 } as ComputeDevice;

const step = (() => {
  const { graph: traced } = trace(
    ((x: Tensor) => sum(matmul(exp(matmul(x, x)), x))) as never,
    [{ dtype: "f32", shape: [32, 32] }] as never,
  );
  const graph = optimize(traced);
  const plan = planMemory(graph);
  return { graph, plan, settled: plan.settled, stateInputs: 1 };
})();

/** Rounds seconds to binary fractions, which floating point represents exactly, so that sums are exact. */
const exact = (seconds: number): number => Math.round(seconds * 2 ** 20) / 2 ** 20;
const ranks = madeUpRun(2).map((one) => ({
  ...one,
  spans: one.spans.map((span) => ({
    ...span,
    startSeconds: exact(span.startSeconds),
    endSeconds: exact(span.endSeconds),
  })),
}));

/** Steps of 10, 11 and 12 ms, which differ in the time between the kernels and the end of the step. */
const steps = worldSteps(ranks).map((ranks, i) =>
  ranks.map((one) => ({ ...one, whole: { ...one.whole, endSeconds: one.whole.endSeconds + exact(i / 1000) } })),
);

const report = buildReport({
  facts: {
    name: "golden",
    backend: "cpu",
    ranks: 2,
    kernelClock: "host",
    samplesPerStep: 64,
  },
  measured: { steps, overheadSeconds: 2 ** -17 },
  priced: { step, stateBytes: 5000, program: madeUpProgram, device },
  warmUpSteps: 0,
  madeAt: new Date("2026-11-23T09:30:00Z"),
  machine: "a machine",
});

/** Tests the computation of all report values from spans. */
test.each([
  ["report.json", () => `${JSON.stringify(report, undefined, 2)}\n`],
  ["terminal.txt", () => terminalReport(report, { columns: 80 })],
  ["operators.csv", () => csvOf(report).operators.replaceAll("\r\n", "\n")],
  ["collectives.csv", () => csvOf(report).collectives.replaceAll("\r\n", "\n")],
  [
    "tables.html",
    () =>
      `${[...reportPage(report).matchAll(/<tbody>.*?<\/tbody>/gs)].map(([table]) => table.replaceAll("><", ">\n<")).join("\n")}\n`,
  ],
])("%s", async (name, output) => {
  await expect(output()).toMatchFileSnapshot(`golden/${name}.golden`);
});

test("the report is accepted by its parser", () => {
  expect(parseReport(JSON.stringify(report), "golden")).toEqual(JSON.parse(JSON.stringify(report)));
});
