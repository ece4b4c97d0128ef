import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  collectivePricer,
  hardwareNamed,
  kernelPricer,
  rebucket,
  simulate,
  type StepProgram,
  stepProgram,
  stepTasks,
} from "@skein/cost-model";
import { openJob } from "skein-train/profiling";
import { afterAll, beforeAll, expect, test } from "vitest";

const { device } = hardwareNamed("laptop-cpu");
const link = {
  within: { secondsPerMessage: 2e-4, secondsPerByte: 8e-9 },
  across: { secondsPerMessage: 2e-4, secondsPerByte: 8e-9 },
  reduceSecondsPerByte: 1e-10,
};
const ranks = [0, 1, 2, 3];
const collectives = { data: collectivePricer({ worldSize: ranks.length, sharesMemory: false, link }) };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-profile-test-"));
  writeFileSync(
    join(folder, "job.yaml"),
    `name: tiny
ranks: 4
transport: tcp
backend: cpu
batch: 64
steps: 30
data: { kind: mnist, trainSamples: 640, testSamples: 200 }
model: { kind: mlp, hidden: [32, 32] }
optimizer: { kind: adamw }
learningRate: { peak: 0.005 }
`,
  );
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const traced = async (...set: string[]): Promise<StepProgram> =>
  stepProgram((await openJob(join(folder, "job.yaml"), { set })).step(), { device, collectives });

const secondsOf = (program: StepProgram): number => {
  const tasks = stepTasks(program);
  return simulate({ programs: ranks.map(() => tasks), groups: { data: [ranks] } }, { spans: false }).stepSeconds;
};

const oneBucket = "buckets={kind: fixed-size, bytes: 1073741824}";

test.each([
  ["{kind: identity}", 1e-9],
  ["{kind: top-k, density: 0.01}", 0.05], // which entries are looked at together changes what is fused
] as const)("%s: a step bucketed anew is the step that is traced with those buckets", async (kind, tolerance) => {
  const compression = `compression=${kind}`;
  const base = await traced("buckets.kind=per-tensor", "overlap=wait-free", compression);
  const all = base.flatMap(({ kind: what, scope }) => (what === "start" && scope.startsWith("exchange-") ? [Number(scope.slice(9))] : []));
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
