import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { MlpParams } from "@skein/models";
import { flattenTree, type NdArray } from "@skein/tensor-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { train, type TrainJob } from "../src/index.ts";
import { data, model } from "./points.ts";

// A plan is measured for a given number of ranks. A run that resumes on another number of ranks must equal an
// uninterrupted run.

let folder: string;
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "skein-plans-"))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Settings = Pick<TrainJob<MlpParams>, "optimizer"> & Partial<TrainJob<MlpParams>>;

const kfac = { kind: "kfac", size: "free", damping: 0.03, factorEvery: 1, inverseEvery: 2 } as const;

const planned: Record<string, Settings> = {
  "K-FAC, form spd": { optimizer: { ...kfac, form: "spd" } },
  "K-FAC, form mpd with planned buckets": { optimizer: { ...kfac, form: "mpd", factorBuckets: { kind: "planned" } } },
  "planned gradient buckets": { optimizer: { kind: "momentum" }, buckets: { kind: "mg-wfbp" } },
};

const stepsPerLeg = 2;

const run = (settings: Settings, ranks: number, steps: number, output: string, resume = false) => {
  const notes: string[] = [];
  const job: TrainJob<MlpParams> = {
    seed: 5,
    backend: "cpu",
    blas: "off",
    batch: 24,
    learningRate: { peak: 0.01 },
    evaluation: { batch: 12 },
    replicas: { checkEverySteps: 1 },
    ranks,
    steps,
    data,
    model,
    ...settings,
  };
  return train(job, { output: join(folder, output), resume, onNote: (line) => notes.push(line) }).then((result) => ({
    params: flattenTree<NdArray>(result.parameters()).leaves.flatMap((leaf) => leaf.toNumbers()),
    notes,
  }));
};

/**
 * Rank counts of a run that is stopped and resumed, one per start. Planning on threads is slow, so only one chain runs
 * by default.
 */
const chains: readonly (readonly [name: string, ranks: readonly number[]])[] = [
  ["K-FAC, form spd", [2, 4, 1]],
  ["K-FAC, form spd", [4, 2, 1, 2]],
  ["K-FAC, form mpd with planned buckets", [2, 4, 2, 1]],
  ["planned gradient buckets", [2, 4, 2, 1]],
];

for (const [number, [name, worlds]] of chains.entries())
  test(`${name}: a run resumed on ${worlds.join(", then ")} ranks equals an uninterrupted one`, {
    ...(number > 0 && { tags: "full" }),
  }, async () => {
    const settings = planned[name]!;
    const { params: expected } = await run(settings, 1, stepsPerLeg * worlds.length, `${number} whole`);
    let last: Awaited<ReturnType<typeof run>> | undefined;
    for (const [leg, ranks] of worlds.entries()) {
      last = await run(settings, ranks, stepsPerLeg * (leg + 1), `${number}`, leg > 0);
      const from = worlds[leg - 1] ?? 1;
      const again = last.notes.filter((line) => line.endsWith("planning again"));
      expect(again).toHaveLength(from > 1 && ranks > 1 ? 1 : 0);
      for (const line of again) expect(line).toContain(`(ranks: ${from}, now ${ranks})`);
    }
    const size = Math.max(...expected.map(Math.abs));
    last!.params.forEach((value, i) => expect(Math.abs(value - expected[i]!)).toBeLessThan(2e-5 * size));
  });
