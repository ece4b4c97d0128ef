import { parseJob } from "@skein/job/node";
import type { MetricLine } from "@skein/run-files/node";
import { expect, test } from "vitest";
import { runReportOf } from "./run-report-of.ts";

const job = parseJob(
  `
name: small
seed: 1
ranks: 2
batch: 4
steps: 3
data: { kind: moby-dick }
model: { kind: gpt, experts: { count: 2, every: 1, gate: sigmoid } }
optimizer: { kind: adamw }
learningRate: { peak: 0.001 }
compression: { kind: identity }
`,
  "job.yaml",
);

const step = (number: number, loads: readonly [number, number], own: object = {}): MetricLine => ({
  type: "step",
  step: number,
  loss: 3 - number,
  seconds: 2,
  samplesPerSecond: 2,
  exposedSeconds: 0.5 * number,
  ...own,
  "block-3.load_E.0": loads[0],
  "block-3.load_E.1": loads[1],
  "block-3.droppedShare": number / 10,
});

test("values by step, shares of a step as medians, and loads of each layer", () => {
  const report = runReportOf(job, [
    step(1, [4, 0], { exposedAllToAllSeconds: 0.1 }),
    step(2, [3, 1], { exposedAllToAllSeconds: 0.3 }),
    { type: "evaluation", step: 2, loss: 0.75, bitsPerByte: 1.1 },
    { type: "checkpoint", step: 2, folder: "x" },
    { type: "placement", step: 2, layer: "block-3", moves: 2, busiestBefore: 1.5, busiestAfter: 1.1, seconds: 0.01 },
    step(3, [2, 2], { exposedAllToAllSeconds: 0.2, loss: null }),
  ]);
  expect(report).toEqual({
    name: "small",
    about: "gpt on moby-dick; adamw; auto, 2 ranks over threads",
    losses: [
      [1, 2],
      [2, 1],
    ],
    evaluations: { loss: [[2, 0.75]], bitsPerByte: [[2, 1.1]] },
    samplesPerSecond: [
      [1, 2],
      [2, 2],
      [3, 2],
    ],
    exposedShare: 0.5,
    exposedAllToAllShare: 0.1,
    experts: [
      {
        layer: "block-3",
        steps: [1, 2, 3],
        loads: [
          [4, 0],
          [3, 1],
          [2, 2],
        ],
        droppedShare: [0.1, 0.2, 0.3],
      },
    ],
    moves: [{ layer: "block-3", step: 2, moves: 2, busiestBefore: 1.5, busiestAfter: 1.1 }],
  });
});

test("a run without any metrics yet", () => {
  expect(runReportOf(job, [])).toMatchObject({ losses: [], evaluations: {}, experts: [], moves: [] });
});
