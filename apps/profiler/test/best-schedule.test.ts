import { worldSteps } from "@skein/report";
import { collectivePricer, type StepProgram, stepProgram, stepTasks } from "@skein/cost-model/pricing";
import { type ComputeDevice, hardwareNamed } from "@skein/cost-model/hardware";
import type { KernelSample } from "@skein/cost-model/calibration";
import { simulate } from "@skein/cost-model/simulation";
import type { RankSpans } from "@skein/tensor-core";
import type { PreparedStep } from "skein-train/profiling";
import { expect, test } from "vitest";
import { setOf } from "../src/predict/candidates.ts";
import { bestSchedule } from "../src/profile/best-schedule.ts";
import { tinyJob } from "./tiny-job.ts";

const ranks = [0, 1, 2, 3];
const device: ComputeDevice = hardwareNamed("laptop-cpu").device;
const within = { secondsPerMessage: 2e-4, secondsPerByte: 8e-9 };
const link = { within, across: within, reduceSecondsPerByte: 0 };
const collectives = { data: collectivePricer({ worldSize: ranks.length, sharesMemory: false, link }) };

const opened = tinyJob([32, 32]);

const simulated = (program: StepProgram, steps: number) => {
  const tasks = stepTasks(program);
  return simulate({ programs: ranks.map(() => tasks), groups: { data: [ranks] }, hosts: [ranks] }, { steps });
};

/** Returns the spans that a run with known links would record. */
const recorded = (step: PreparedStep) => {
  const program = stepProgram(step, { device, collectives });
  const { ranks: spans, endSeconds, stepSeconds } = simulated(program, 8);
  const algorithms = new Map(
    program.flatMap((one) => (one.kind === "start" ? [[one.name, one.price.algorithm] as const] : [])),
  );
  const withSteps = spans.map(({ rank, spans: own }): RankSpans => {
    const recorded = own.map((span) => {
      const algorithm = span.track === "collectives" ? algorithms.get(span.name) : undefined;
      return algorithm === undefined ? span : { ...span, args: { ...span.args, algorithm, ranks } };
    });
    const wholes = endSeconds.map((end, i) => ({
      name: `step ${i + 1}`,
      track: "steps" as const,
      startSeconds: endSeconds[i - 1] ?? 0,
      endSeconds: end,
    }));
    return { rank, spans: [...recorded, ...wholes] };
  });
  const samples = program.flatMap((one): KernelSample[] =>
    one.kind === "kernel"
      ? [{ operator: one.operator, flops: one.price.flops, bytes: one.price.bytes, seconds: one.price.seconds }]
      : [],
  );
  return { measured: { steps: worldSteps(withSteps), samples: () => samples, step }, stepSeconds };
};

test("finds a schedule whose step takes the predicted time, and less than the original", async () => {
  const job = await opened("buckets.kind=per-tensor", "overlap=none");
  const { measured, stepSeconds } = recorded(job.step());
  const found = (await bestSchedule(job, measured, device))!;
  // Prices fitted to the run predict the run; the fit knows the links only from the run's collectives.
  expect(Math.abs(found.ownSeconds / stepSeconds - 1)).toBeLessThan(0.05);
  expect(found.seconds).toBeLessThan(0.9 * found.ownSeconds);
  const changed = await job.with(setOf(found.settings));
  const after = simulated(stepProgram(changed.step(), { device, collectives }), 1).stepSeconds;
  expect(after).toBeLessThan(0.9 * stepSeconds);
  expect(Math.abs(found.seconds / after - 1)).toBeLessThan(0.1);
  expect(Object.keys(found.settings)).not.toContain("compression");
});

test("finds no schedule for one rank, or for unknown links", async () => {
  const job = await opened("buckets.kind=per-tensor", "overlap=none");
  const { measured } = recorded(job.step());
  expect(await bestSchedule(await job.with(setOf({ ranks: 1 })), measured, device)).toBeUndefined();
  const silent = measured.steps.map((one) =>
    one.map((rank) => ({ ...rank, spans: rank.spans.filter(({ track }) => track === "compute") })),
  );
  expect(await bestSchedule(job, { ...measured, steps: silent }, device)).toBeUndefined();
});
