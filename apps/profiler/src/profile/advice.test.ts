import type { ProfileReport, Times } from "@skein/report";
import { expect, test } from "vitest";
import { adviceOn } from "./advice.ts";
import type { BestSchedule } from "./best-schedule.ts";

const times = (median: number): Times => ({ median, mad: 0, n: 10 });

/** Returns a report without advice for a step of 10 ms. */
const figures = (exposedSeconds: number): Omit<ProfileReport, "advice"> => ({
  format: "skein-profile",
  version: 1,
  job: "job",
  madeAt: "",
  machine: "",
  backend: "cpu",
  ranks: 2,
  steps: 10,
  warmUpSteps: 0,
  samplesPerStep: 1,
  step: times(0.01),
  exposedSeconds: times(exposedSeconds),
  predictedStepSeconds: undefined,
  device: { name: "device", flopsPerSecond: 1, bytesPerSecond: 1 },
  operators: [],
  outside: (["waiting", "data", "host", "between"] as const).map((kind) => {
    const seconds = kind === "waiting" ? exposedSeconds : 0;
    return { kind, seconds: times(seconds), share: seconds / 0.01 };
  }),
  collectives: [],
  memory: { points: [], stateBytes: 0, plannedBytes: 0, tensors: [] } as unknown as ProfileReport["memory"],
  timeline: [],
});

const settings = { overlap: "wait-free", buckets: { kind: "mg-wfbp", plan: "exact" }, priorities: "none" };
const schedule = (seconds: number, ownSeconds: number): BestSchedule => ({
  settings,
  seconds,
  ownSeconds,
  configurations: 40,
  links: "links",
});
const onSchedule = (exposedSeconds: number, found?: BestSchedule): ReturnType<typeof adviceOn> =>
  adviceOn(figures(exposedSeconds), found);

test("advises a schedule that saves time, with its saving relative to the predicted step and its basis", () => {
  const [advice, ...others] = onSchedule(0.004, schedule(0.0069, 0.009));
  expect(others).toEqual([]);
  expect(advice).toMatchObject({
    cure: "exchange gradients with overlap: wait-free, buckets: mg-wfbp plan exact",
    change: settings,
  });
  expect(advice!.finding).toContain("40 % of the step is communication");
  expect(advice!.saves).toBeCloseTo(1 - 69 / 90, 12);
  expect(advice!.basis).toMatch(/40 schedules .* these predict 9\.00 ms for the step as it is, measured: 10\.0 ms$/);
});

test("reports the share of waiting in the step, not the median of waits, which is far below if a few waits are long", () => {
  const [advice] = adviceOn({ ...figures(0.004), exposedSeconds: times(0.001) }, undefined);
  expect(advice!.finding).toMatch(/^40 % of the step .* \(4\.00 ms\)/);
});

test.each([
  [
    "what saves less than 3 % is not advised",
    schedule(0.0099, 0.01),
    /no schedule that loses no more is predicted to save 3/,
  ],
  ["what prices do not explain is not advised", schedule(0.001, 0.004), /prices do not explain this run/],
  ["nor is anything advised without a search", undefined, /skein-profile plan/],
] as const)("%s", (_, found, words) => {
  const [advice] = onSchedule(0.004, found);
  expect(advice!.cure).toMatch(words);
  expect([advice!.change, advice!.saves]).toEqual([undefined, undefined]);
});

test("gives no advice on communication for a step that hides it", () => {
  expect(onSchedule(0.0004, schedule(0.001, 0.01))).toEqual([]);
});
