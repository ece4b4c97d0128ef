import { type Job, parseJob, parseOverride } from "@skein/job/node";
import { describe, expect, test } from "vitest";
import { type ExchangePlan, exchangePlanSchema, isDue, type PlanName, planNames } from "./exchange-plan.ts";
import { boundPlans, keptPlan, planBasis, type PlanWorld, wantedPlan } from "./kept-plan.ts";

const text = `
name: small
seed: 1
ranks: 4
batch: 8
steps: 1
data: { kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30 }
model: { kind: gpt, layers: 2, heads: 4, width: 16 }
optimizer: { kind: momentum }
learningRate: { peak: 0.01 }
compression: { kind: identity }
evaluation: { batch: 8 }
`;
const jobOf = (...set: string[]): Job =>
  parseJob(
    text,
    "job.yaml",
    set.map((value) => parseOverride(value)),
  );
const experts = "model.experts={count: 8, topK: 2, dispatch: auto, chunks: auto}";
const shards = "model.experts={count: 8, topK: 2, dispatch: dense, shards: auto}";
const moved = "model.experts={count: 8, topK: 2, dispatch: ragged, placement: {everySteps: 2, when: pays}}";

/** For each part of a plan: settings of a job that plans the part, and a plan with this part. */
const cases: readonly (readonly [name: PlanName, settings: readonly string[], plan: ExchangePlan])[] = [
  ["exchange", ["buckets={kind: mg-wfbp}"], { buckets: [["a"], ["b"]] }],
  [
    "curvature",
    ["optimizer={kind: kfac, form: spd}"],
    {
      curvature: {
        form: { kind: "spd" },
        placement: { workers: 4, layers: {} },
        factors: "mean",
        buckets: [["a (inputs)"]],
      },
    },
  ],
  ["experts", ["mesh={expert: 4}", experts], { experts: { dispatch: "ragged", chunks: 2 } }],
  ["expertExchange", ["mesh={expert: 4}", moved], { expertExchange: { startupSeconds: 1, secondsPerByte: 1 } }],
  [
    "expertSchedule",
    ["mesh={expert: 2, tensor: 2}", shards],
    { expertSchedule: { schedule: "split-before-gate", seconds: {} } },
  ],
];
const world: PlanWorld = { hosts: [[0, 1, 2, 3]], trainedHash: "0123" };
const withBasis = (name: PlanName, plan: ExchangePlan, job: Job): ExchangePlan => ({
  ...plan,
  basis: { [name]: planBasis(name, job, world) },
});

test("a case for each part", () => {
  expect(cases.map(([name]) => name).toSorted()).toEqual(planNames.toSorted());
});

describe.each(cases)("the plan of %s", (name, settings, bare) => {
  const job = jobOf(...settings);
  const plan = withBasis(name, bare, job);

  test("stays under the same conditions, through a manifest too", () => {
    const read = exchangePlanSchema.parse(JSON.parse(JSON.stringify(plan)));
    expect(read).toEqual(plan);
    expect(keptPlan(read, job, world, [])).toEqual({ plan, remarks: [] });
    expect(isDue(name, job, plan)).toBe(false);
    expect(isDue(name, job, undefined)).toBe(true);
  });

  test.each<[what: string, job: Job, world: PlanWorld, reason: string]>([
    ["ranks", jobOf(...settings, "ranks=8"), { ...world, hosts: [[0, 1, 2, 3, 4, 5, 6, 7]] }, "ranks: 4, now 8"],
    [
      "hosts",
      job,
      {
        ...world,
        hosts: [
          [0, 1],
          [2, 3],
        ],
      },
      "hosts: ranks 0–3, now ranks 0, 1 | ranks 2, 3",
    ],
    ["tensors", job, { ...world, trainedHash: "4567" }, "trained tensors: 0123, now 4567"],
    ["batch", jobOf(...settings, "batch=16"), world, "batch: 8, now 16"],
  ])("is planned again for other %s, and the line names both values", (_, changed, on, reason) => {
    const { plan: kept, remarks } = keptPlan(plan, changed, on, []);
    expect(kept).toEqual({});
    expect(remarks).toEqual([expect.stringContaining(`is not used (${reason}); planning again`)]);
    expect(isDue(name, changed, kept)).toBe(true);
  });

  test("of an older checkpoint, without its conditions, is planned again", () => {
    const { plan: kept, remarks } = keptPlan(bare, job, world, []);
    expect(kept).toEqual({});
    expect(remarks).toEqual([expect.stringContaining("it does not record what it was made for")]);
  });

  test("stays if the state of single ranks depends on it", () => {
    expect(keptPlan(bare, job, world, [name])).toEqual({ plan: bare, remarks: [] });
  });

  test("is dropped by a job that does not plan this part", () => {
    expect(wantedPlan(jobOf(), plan)).toEqual({});
    expect(keptPlan(plan, jobOf(), world, [name])).toEqual({ plan: {}, remarks: [] });
    expect(wantedPlan(job, undefined)).toBeUndefined();
  });
});

test("only the parts that differ are planned again", () => {
  const job = jobOf("buckets={kind: mg-wfbp}", "optimizer={kind: kfac, form: spd}");
  const [[, , exchange], [, , curvature]] = cases as [(typeof cases)[number], (typeof cases)[number]];
  const basis = { exchange: planBasis("exchange", job, world), curvature: planBasis("curvature", job, world) };
  const plan: ExchangePlan = { ...exchange, ...curvature, basis };
  const other = { ...job, buckets: { ...job.buckets, plan: "greedy" } } as Job;
  const kept = keptPlan(plan, other, world, []);
  expect(kept.plan).toEqual({ ...curvature, basis: { curvature: basis.curvature } });
  expect(kept.remarks).toHaveLength(1);
});

test("a plan that the job no longer allows is planned again", () => {
  const job = jobOf("mesh={expert: 4}", experts);
  const plan = withBasis("experts", { experts: { dispatch: "ragged", chunks: 2 } }, job);
  const fixed = jobOf("mesh={expert: 4}", experts, "model.experts.chunks=4");
  expect(keptPlan(plan, fixed, world, []).remarks).toEqual([expect.stringContaining("the job does not allow it")]);
});

test("residuals are laid out by buckets, a rank's inverses by the plan of K-FAC", () => {
  expect(boundPlans([])).toEqual([]);
  expect(boundPlans(["residuals.0", "residuals.1"])).toEqual(["exchange"]);
  expect(boundPlans(["optimizer.0.own.w"])).toEqual(["curvature"]);
});

test("manifests of older versions are read, without the conditions that they recorded elsewhere", () => {
  const old = {
    experts: { dispatch: "ragged", chunks: 2, on: { ranks: 4, expert: 4, levels: [] } },
    expertSchedule: { schedule: "baseline", seconds: {}, mesh: { expert: 2, tensor: 2 } },
  };
  expect(exchangePlanSchema.parse(old)).toEqual({
    experts: { dispatch: "ragged", chunks: 2 },
    expertSchedule: { schedule: "baseline", seconds: {} },
  });
});
