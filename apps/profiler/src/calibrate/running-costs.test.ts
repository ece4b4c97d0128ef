import { worldSteps } from "@skein/report";
import { type HardwareFile, hardwareNamed, type RunningCosts } from "@skein/cost-model/hardware";
import { simulate } from "@skein/cost-model/simulation";
import { type StepProgram, stepTasks } from "@skein/cost-model/pricing";
import type { RankSpans } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { fitRunningCosts, type RanJob } from "./running-costs.ts";

const numRanks = 2;
const all = [0, 1];
const hardware: HardwareFile = hardwareNamed("laptop-cpu");

const job = { facts: { ranks: numRanks }, groups: () => ({ data: { groups: [all] } }) } as unknown as RanJob["job"];

const kernel = (seconds: number): StepProgram[number] => ({
  kind: "kernel",
  node: 0,
  name: "matmul layer",
  scope: "layer",
  args: {},
  operator: "matmul",
  price: { flops: 1, bytes: 1, seconds, rooflineSeconds: seconds, boundBy: "flops", basis: "measured" },
});
/** Bytes sent per collective, which take 0.6 ms at 2 ns per byte during computation. */
const sentBytes = 300_000;
const start = (number: number): StepProgram[number] => ({
  kind: "start",
  node: number,
  name: `all-reduce exchange-${number}`,
  scope: `exchange-${number}`,
  args: {},
  collective: "all-reduce",
  axis: "data",
  bytes: sentBytes,
  price: {
    algorithm: "ring-all-reduce",
    segments: 1,
    seconds: 0.0015,
    sentBytes,
    phases: [{ stream: "intra-node", startupSeconds: 0.0005, transferSeconds: 0.001, messages: 2 }],
  },
});
const wait = (of: number, startIndex: number): StepProgram[number] => ({
  kind: "wait",
  node: of,
  name: `all-reduce exchange-${of}`,
  scope: `exchange-${of}`,
  args: {},
  start: startIndex,
});

/**
 * Returns a program with kernels of 3 ms. If `overlapped`, each collective starts when its operand is ready. Otherwise
 * all collectives start after all kernels. Waits are at the end of the program.
 */
const programOf = (collectives: number, overlapped: boolean): StepProgram => {
  const numbers = Array.from({ length: collectives }, (_, i) => i);
  const kernels = Array.from({ length: 8 }, () => kernel(0.003));
  const started = overlapped
    ? kernels.flatMap((one, i) => (numbers[i] === undefined ? [one] : [one, start(i)]))
    : [...kernels, ...numbers.map(start)];
  return [
    ...started,
    ...numbers.map((i) =>
      wait(
        i,
        started.findIndex((step) => step.kind === "start" && step.node === i),
      ),
    ),
  ];
};

/** Simulates a program on ranks with known running costs. Time outside kernels has no span. */
const ranWith = (program: StepProgram, running: RunningCosts, seed: number): RanJob => {
  const tasks = stepTasks(program, running);
  const { ranks } = simulate(
    { programs: all.map(() => tasks), groups: { data: [all] }, hosts: [all] },
    {
      steps: 160,
      messageDelaySeconds: running.messageDelaySeconds,
      ...(running.stepVariation > 0 && { jitter: { seed, stepVariation: running.stepVariation } }),
    },
  );
  const withSteps = ranks.map(({ rank, spans }): RankSpans => {
    const ends = spans.filter(({ name }) => name === "outside of kernels").map(({ endSeconds }) => endSeconds);
    const wholes = ends.map((endSeconds, i) => ({
      name: `step ${i + 1}`,
      track: "steps" as const,
      startSeconds: ends[i - 1] ?? 0,
      endSeconds,
    }));
    return { rank, spans: [...spans.filter(({ name }) => name !== "outside of kernels"), ...wholes] };
  });
  return { job, rounds: [worldSteps(withSteps)], program };
};

const within = (share: number, value: number, of: number): void => {
  expect(value).toBeGreaterThan(of * (1 - share));
  expect(value).toBeLessThan(of * (1 + share));
};

const truth: RunningCosts = {
  secondsPerStep: 0.002,
  secondsPerCollective: 0.0002,
  collectiveLatencySeconds: 0.0004,
  secondsPerByteBeside: 2e-9,
  stepVariation: 0.1,
  messageDelaySeconds: 0.003,
};
const ways = [
  [1, false],
  [8, false],
  [4, true],
  [8, true],
] as const;

test("recovers the costs that generated the steps", () => {
  const runs = ways.map(([collectives, overlapped], i) => ranWith(programOf(collectives, overlapped), truth, i + 1));
  const { running, fits } = fitRunningCosts(runs, hardware);
  within(0.3, running.stepVariation, truth.stepVariation);
  within(0.2, running.secondsPerCollective, truth.secondsPerCollective);
  within(0.4, running.secondsPerStep, truth.secondsPerStep);
  within(0.5, running.collectiveLatencySeconds, truth.collectiveLatencySeconds);
  within(0.3, running.secondsPerByteBeside, truth.secondsPerByteBeside);
  within(0.5, running.messageDelaySeconds, truth.messageDelaySeconds);
  for (const { measuredSeconds, predictedSeconds } of fits) within(0.05, predictedSeconds, measuredSeconds);
});

test("separates kernels slowed by overlap from kernels slowed by bytes, and both from delayed messages", () => {
  const slowed: RunningCosts = { ...truth, overlapSlowdown: 0.25, stepVariation: 0 };
  const runs = ways.map(([collectives, overlapped]) => ranWith(programOf(collectives, overlapped), slowed, 1));
  const { running, fits } = fitRunningCosts(runs, hardware);
  within(0.2, running.overlapSlowdown!, slowed.overlapSlowdown!);
  within(0.2, running.secondsPerByteBeside, slowed.secondsPerByteBeside);
  within(0.5, running.messageDelaySeconds, slowed.messageDelaySeconds);
  for (const { measuredSeconds, predictedSeconds } of fits) within(0.03, predictedSeconds, measuredSeconds);
});

test("fits a slowdown of overlapped steps that kernels do not show, so that no row is predicted too fast", () => {
  // The clock of a rank that loses its core between kernels: steps take 60 % longer, but kernels do not. Messages that
  // wait until a computation ends explain only part of this increase.
  const stretched = ways.map(([collectives, overlapped], i): RanJob => {
    const run = ranWith(programOf(collectives, overlapped), { ...truth, stepVariation: 0 }, i);
    if (!overlapped) return run;
    const longer = (seconds: number): number => seconds * 1.6;
    const rounds = run.rounds.map((steps) =>
      steps.map((ranks) =>
        ranks.map((step) => ({
          ...step,
          whole: {
            ...step.whole,
            startSeconds: longer(step.whole.startSeconds),
            endSeconds: longer(step.whole.endSeconds),
          },
          spans: step.spans.map((span) => ({
            ...span,
            startSeconds: longer(span.startSeconds),
            endSeconds: longer(span.startSeconds) + (span.endSeconds - span.startSeconds),
          })),
        })),
      ),
    );
    return { ...run, rounds };
  });
  const { fits } = fitRunningCosts(stretched, hardware);
  for (const { overlaps, measuredSeconds, predictedSeconds } of fits)
    if (overlaps) within(0.05, predictedSeconds, measuredSeconds);
});

test("differing rounds are the noise of a row; a single round has no noise", () => {
  const [fast, slow] = [1, 1.1].map((factor) => {
    const [steps] = ranWith(programOf(1, false), { ...truth, stepVariation: 0 }, 1).rounds;
    return steps!.map((ranks) =>
      ranks.map((step) => ({
        ...step,
        whole: {
          ...step.whole,
          startSeconds: 1000 * factor + factor * step.whole.startSeconds,
          endSeconds: 1000 * factor + factor * step.whole.endSeconds,
        },
      })),
    );
  });
  const base = ranWith(programOf(1, false), truth, 1);
  const [fit] = fitRunningCosts([{ ...base, rounds: [fast!, slow!] }], hardware).fits;
  expect(fit!.spread).toBeCloseTo(0.1 / 1.05, 2);
  expect(fitRunningCosts([base], hardware).fits[0]!.spread).toBeUndefined();
});

test("messages without delays have no delay", () => {
  const free: RunningCosts = { ...truth, secondsPerByteBeside: 0, messageDelaySeconds: 0, stepVariation: 0 };
  const { running } = fitRunningCosts(
    ways.map(([collectives, overlapped]) => ranWith(programOf(collectives, overlapped), free, 1)),
    hardware,
  );
  expect(running).toMatchObject({ messageDelaySeconds: 0, stepVariation: 0, overlapSlowdown: 0 });
  expect(running.secondsPerStep).toBeCloseTo(free.secondsPerStep, 6);
  expect(running.secondsPerCollective).toBeCloseTo(free.secondsPerCollective, 6);
  expect(running.collectiveLatencySeconds).toBeCloseTo(free.collectiveLatencySeconds, 6);
  expect(running.secondsPerByteBeside).toBeCloseTo(0, 12);
});

test("without a job that exchanges during computation, the costs of overlap are 0", () => {
  const runs = ways.filter(([, overlapped]) => !overlapped).map(([n]) => ranWith(programOf(n, false), truth, 1));
  expect(fitRunningCosts(runs, hardware).running).toMatchObject({ messageDelaySeconds: 0, secondsPerByteBeside: 0 });
});

test("for jobs with equally many collectives, all time outside kernels is a cost per step", () => {
  const { running } = fitRunningCosts([ranWith(programOf(4, true), { ...truth, stepVariation: 0 }, 1)], hardware);
  expect(running.secondsPerCollective).toBe(0);
  within(0.1, running.secondsPerStep, truth.secondsPerStep + 4 * truth.secondsPerCollective);
});
