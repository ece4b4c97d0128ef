import {
  codecSeconds,
  collectivePricer,
  kernelPricer,
  pricedExchange,
  rebucket,
  rebucketHalves,
  type StepProgram,
  stepProgram,
  stepTasks,
  withExchanges,
} from "@skein/cost-model/pricing";
import { type ComputeDevice, hardwareNamed, roofline } from "@skein/cost-model/hardware";
import { planDear } from "@skein/cost-model/planners";
import { simulate } from "@skein/cost-model/simulation";
import { expect, test } from "vitest";
import { tinyJob } from "./tiny-job.ts";

const { device } = hardwareNamed("laptop-cpu");
const link = {
  within: { secondsPerMessage: 2e-4, secondsPerByte: 8e-9 },
  across: { secondsPerMessage: 2e-4, secondsPerByte: 8e-9 },
  reduceSecondsPerByte: 1e-10,
};
const ranks = [0, 1, 2, 3];
const collectives = { data: collectivePricer({ worldSize: ranks.length, sharesMemory: false, link }) };

const opened = tinyJob([32, 32]);

const traced = async (...set: string[]): Promise<StepProgram> =>
  stepProgram((await opened(...set)).step(), { device, collectives });

const secondsOf = (program: StepProgram): number => {
  const tasks = stepTasks(program);
  return simulate({ programs: ranks.map(() => tasks), groups: { data: [ranks] } }, { spans: false }).stepSeconds;
};

const oneBucket = "buckets={kind: fixed-size, bytes: 1073741824}";

test.each([
  ["{kind: identity}", 1e-9],
  ["{kind: top-k, density: 0.01}", 0.05], // other buckets change the kernel fusion
] as const)("%s: a step bucketed anew is the step that is traced with those buckets", async (kind, tolerance) => {
  const compression = `compression=${kind}`;
  const base = await traced("buckets.kind=per-tensor", "overlap=wait-free", compression);
  const all = base.flatMap(({ kind: what, scope }) =>
    what === "start" && scope.startsWith("exchange-") ? [Number(scope.slice(9))] : [],
  );
  expect(all).toHaveLength(6);
  for (const overlap of ["wait-free", "none"] as const)
    for (const [buckets, groups] of [
      [oneBucket, [all.toSorted((a, b) => a - b)]],
      ["buckets.kind=per-tensor", all.map((bucket) => [bucket])],
    ] as const) {
      const expected = secondsOf(await traced(buckets, `overlap=${overlap}`, compression));
      const made = secondsOf(rebucket(base, { groups, overlap, priceKernel: kernelPricer(device), collectives }));
      expect(Math.abs(made / expected - 1), `${overlap}, ${buckets}`).toBeLessThan(tolerance);
    }
});

test.each([
  ["{kind: top-k, density: 0.01}", 0.03],
  ["{kind: power-sgd, rank: 4}", 0.03], // two rounds of messages
  ["{kind: qsgd, levels: 127}", 0.03],
] as const)(
  "%s: a dense step with exchanges that were traced by themselves is the step that is traced with them",
  async (kind, tolerance) => {
    const base = await traced("buckets.kind=per-tensor", "overlap=wait-free");
    const job = await opened(`compression=${kind}`);
    const gradients = job.gradients();
    for (const [buckets, groups] of [
      [oneBucket, [[...gradients.keys()]]],
      ["buckets.kind=per-tensor", [...gradients.keys()].map((bucket) => [bucket])],
    ] as const) {
      const exchanges = groups.map((own) => ({
        buckets: own,
        exchange: pricedExchange(job.exchange(own.map((bucket) => gradients[bucket]!)), { device, collectives }),
      }));
      const expected = secondsOf(await traced(buckets, "overlap=wait-free", `compression=${kind}`));
      const made = secondsOf(withExchanges(base, exchanges, "wait-free"));
      expect(Math.abs(made / expected - 1), buckets).toBeLessThan(tolerance);
    }
  },
);

test("a rebucketed step in halves equals the traced step in halves with those buckets", async () => {
  const base = await traced("buckets.kind=per-tensor", "overlap=dear");
  const sizes = [0, 1, 2, 3, 4, 5].map((bucket) =>
    base.find((step) => step.scope === `exchange-${bucket}` && step.kind === "start"),
  );
  const tensors = sizes.map((start, bucket) => ({
    path: String(bucket),
    bytes: (start as { bytes: number }).bytes,
    backwardSeconds: 0,
  }));
  for (const bytes of [2 ** 14, 2 ** 30]) {
    const groups = planDear({ tensors }, bytes).map((paths) => paths.map(Number));
    const expected = secondsOf(await traced(`buckets={kind: fixed-size, bytes: ${bytes}}`, "overlap=dear"));
    const halves = rebucketHalves(base, { groups, priceKernel: kernelPricer(device), collectives });
    const made = secondsOf(halves);
    expect(Math.abs(made / expected - 1), `${bytes}`).toBeLessThan(1e-3);
    if (groups.length > 1) continue;
    const scattered = halves.findIndex((step) => step.kind === "start" && step.collective === "reduce-scatter");
    expect(
      halves.slice(scattered).filter(({ kind, scope }) => kind === "kernel" && scope.endsWith("/backward")),
    ).toEqual([]);
  }
});

test("a dense exchange has no kernels of its own, and a compression reads each gradient at least once", async () => {
  const codecOf = async (kind: string): Promise<number> => {
    const job = await opened(`compression=${kind}`);
    const weight = { path: "weight", shape: [512, 256], axis: "data" };
    return codecSeconds(pricedExchange(job.exchange([weight]), { device, collectives }));
  };
  expect(await codecOf("{kind: identity}")).toBe(0);
  const whole: ComputeDevice = { ...device, efficiencies: [], assumedEfficiency: 1, kernelStartSeconds: 0 };
  const { seconds } = roofline(whole, { flops: 0, bytes: 4 * 512 * 256 });
  for (const kind of ["top-k", "ms-top-k", "g-top-k", "qsgd", "tern-grad", "eight-bit", "agoq", "power-sgd", "acp-sgd"])
    expect(await codecOf(`{kind: ${kind}}`), kind).toBeGreaterThan(seconds);
});
