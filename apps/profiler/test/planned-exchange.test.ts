import { type HardwareFile, hardwareNamed } from "@skein/cost-model/hardware";
import { isStart } from "@skein/cost-model/pricing";
import { describe, expect, test } from "vitest";
import { baseSteps } from "../src/plan/base-steps.ts";
import { dense, setOf } from "../src/predict/candidates.ts";
import { planWorlds } from "../src/plan/plan-worlds.ts";
import { searchConfigurations } from "../src/plan/search.ts";
import { planOn } from "../src/predict/plan-on.ts";
import { predictStep } from "../src/predict/predict-step.ts";
import { tinyJob } from "./tiny-job.ts";

const opened = tinyJob([512, 512]);

/** Returns hardware with one rank per host, and with the given message cost between hosts. */
const network = (secondsPerMessage: number, secondsPerByte: number): HardwareFile => {
  const laptop = hardwareNamed("laptop-cpu");
  const link = { secondsPerMessage, secondsPerByte };
  return { ...laptop, topology: { ranks: 4, ranksPerHost: 1 }, links: { ...laptop.links, within: link, across: link } };
};

const gradients = 6;

test.each(["exact", "greedy"])(
  "where a message costs a second to start all go in one, where it costs nothing none waits for another layer's: %s",
  async (plan) => {
    const job = await opened("overlap=wait-free", `buckets={kind: mg-wfbp, plan: ${plan}}`);
    expect((await planOn(job, network(1, 1e-9)))!.buckets).toHaveLength(1);
    expect((await planOn(job, network(0, 1e-7)))!.buckets.length).toBeGreaterThan(1);
  },
);

test("the predicted step sends the planned exchange, and is no longer than with each tensor by itself", async () => {
  const hardware = network(2e-5, 1e-9);
  const [planned, single] = await Promise.all(
    ["{kind: mg-wfbp, plan: exact}", "{kind: per-tensor}"].map(async (buckets) =>
      predictStep(await opened("overlap=wait-free", `buckets=${buckets}`), hardware),
    ),
  );
  const plan = (await planOn(await opened("overlap=wait-free", "buckets={kind: mg-wfbp, plan: exact}"), hardware))!;
  const messages = planned!.program.filter((step) => isStart(step) && /^exchange-\d+$/.test(step.scope));
  expect(messages).toHaveLength(plan.buckets.length);
  expect(plan.buckets.length).toBeGreaterThan(1);
  expect(plan.buckets.length).toBeLessThan(gradients);
  expect(planned!.simulated.stepSeconds).toBeLessThanOrEqual(single!.simulated.stepSeconds);
});

test("plans densities too: the slower the network, the fewer entries", async () => {
  const job = await opened(
    "overlap=wait-free",
    "buckets={kind: per-tensor}",
    "compression={kind: lags, minDensity: 0.001, maxDensity: 0.5}",
  );
  const sent = async (hardware: HardwareFile): Promise<number> =>
    Object.values((await planOn(job, hardware))!.densities!).reduce((sum, density) => sum + density, 0);
  const [fast, slow] = [await sent(network(1e-6, 1e-12)), await sent(network(1e-6, 1e-5))];
  expect(fast).toBeGreaterThan(slow);
  expect(slow).toBeCloseTo(gradients * 0.001);
});

test("with layers of experts, gradients fill the idle times of the token exchanges, in fewer messages if the start-up is long", async () => {
  const job = await opened(
    "data={kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30}",
    "model={kind: gpt, layers: 2, heads: 2, width: 16, experts: {count: 4, every: 1, chunks: 2}}",
    "mesh.expert=2",
    "buckets={kind: moe-idle}",
  );
  const bucketsOn = async (hardware: HardwareFile): Promise<readonly (readonly string[])[]> =>
    (await planOn(job, hardware))!.buckets;
  const [slow, fast] = [await bucketsOn(network(1, 1e-9)), await bucketsOn(network(0, 1e-9))];
  expect(slow.length).toBeLessThan(fast.length);
  const isOfExperts = (path: string): boolean => path.includes(".experts.experts.");
  for (const buckets of [slow, fast]) {
    expect(buckets.flat().toSorted()).toEqual(
      job
        .gradients()
        .map(({ path }) => path)
        .toSorted(),
    );
    // Gradients of experts are averaged over different ranks than other gradients.
    for (const bucket of buckets) expect(new Set(bucket.map(isOfExperts)).size).toBe(1);
  }
  const { simulated } = await predictStep(job, network(1e-5, 1e-9));
  expect(simulated.stepSeconds).toBeGreaterThan(0);
});

describe("gradients of experts on a single rank", () => {
  const model = "model={kind: gpt, layers: 2, heads: 2, width: 16, experts: {count: 4, every: 1}}";
  const gpt = ["data={kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30}", model];
  const isOfExperts = ({ path }: { readonly path: string }): boolean => path.includes(".experts.experts.");

  test.each([
    ["exact", "none"],
    ["greedy", "none"],
    ["simultaneous", "spread"],
  ])("wait for nothing, for any cost of messages: %s", async (plan, priorities) => {
    const job = await opened(
      ...gpt,
      "mesh.expert=4",
      `priorities=${priorities}`,
      `buckets={kind: mg-wfbp, plan: ${plan}}`,
    );
    const gradients = job.gradients();
    const { buckets } = (await planOn(job, network(1, 1e-9)))!;
    const alone = gradients.filter(isOfExperts).map(({ path }) => path);
    expect(alone).toHaveLength(4);
    expect(buckets.flat()).toHaveLength(gradients.length);
    expect(buckets.slice(-alone.length).toSorted()).toEqual(alone.map((path) => [path]).toSorted());
    // All traffic is between the same ranks, in one message or in up to two concurrent messages.
    expect(buckets.length - alone.length).toBeLessThanOrEqual(plan === "simultaneous" ? 2 : 1);
  });

  test("are dense with planned densities", async () => {
    const job = await opened(
      ...gpt,
      "mesh.expert=4",
      "buckets={kind: per-tensor}",
      "compression={kind: lags, minDensity: 0.001, maxDensity: 0.5}",
    );
    const { densities } = (await planOn(job, network(1e-6, 1e-4)))!;
    const isDense = ({ path }: { readonly path: string }): boolean => densities![path] === 1;
    expect(job.gradients().filter(isOfExperts).every(isDense)).toBe(true);
    expect(job.gradients().every(isDense)).toBe(false);
  });

  test.each(["mesh.expert=4", "mesh.expert=2"])("a search finds steps that jobs with them take: %s", async (mesh) => {
    const hardware = network(2e-5, 1e-9);
    const job = await opened(...gpt, mesh);
    const topK = { kind: "top-k", density: 0.01 };
    const { scored } = await searchConfigurations({
      job,
      hardware,
      bases: await baseSteps(job, hardware),
      compressions: [dense, topK],
    });
    const planned = scored.filter(({ settings }) => JSON.stringify(settings["buckets"]).includes("mg-wfbp"));
    expect(new Set(planned.map(({ settings }) => settings["compression"]))).toEqual(new Set([dense, topK]));
    for (const settings of [dense, topK].map(
      (compression) => scored.find((one) => one.settings["compression"] === compression)!,
    )) {
      const { simulated } = await predictStep(await job.with(setOf(settings.settings)), hardware);
      expect(Math.abs(settings.seconds / simulated.stepSeconds - 1)).toBeLessThan(0.1);
    }
  });
});

test("gradients on a single rank with few ranks are sent with more ranks: both cases are searched", async () => {
  const job = await opened(
    "data={kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30}",
    "model={kind: gpt, layers: 1, heads: 2, width: 16, experts: {count: 4, every: 1}}",
    "mesh.expert=2",
  );
  const hardware = network(2e-5, 1e-9);
  const planOf = async (...ranks: number[]) =>
    (await planWorlds(job, hardware, { ranks, keep: "rank-batch", lossless: true })).worlds;
  const [two, four] = await planOf(2, 4);
  const [onlyFour] = await planOf(4);
  expect(four!.scored).toEqual(onlyFour!.scored);
  expect(two!.scored[0]!.sentBytes).toBeLessThan(four!.scored[0]!.sentBytes);
});

test("a job whose file fixes its buckets has no plan", async () => {
  expect(await planOn(await opened("overlap=wait-free", "buckets={kind: per-tensor}"), network(1, 1))).toBeUndefined();
});
