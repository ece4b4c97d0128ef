import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jobFolder, skeinTrain, stepLosses } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

/** What a run of so many steps ends with. */
const saved = (output: string, steps: number): Buffer =>
  readFileSync(join(folder, output, `checkpoints/step-${String(steps).padStart(8, "0")}/shared.safetensors`));

const plain = ["compression={kind: identity}", "model.hidden=[24, 16]", "learningRate={peak: 0.02}"];

const train = async (output: string, settings: readonly string[], ...args: string[]): Promise<Buffer> => {
  const set = [...plain, ...settings].flatMap((setting) => ["--set", setting]);
  const { code, stderr } = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--output",
    output,
    "--steps",
    "12",
    ...set,
    ...args,
  );
  expect(stderr).not.toContain("rank ");
  expect(code).toBe(0);
  return saved(output, 12);
};

const optimizers: readonly (readonly [name: string, optimizer: string])[] = [
  ["eva", "{kind: eva}"],
  ["eva-f", "{kind: eva-f, size: gradient-norm}"],
  ["kfac", "{kind: kfac, factorEvery: 2, inverseEvery: 4}"],
  ["kfac-d", "{kind: kfac, form: d, factorEvery: 1, inverseEvery: 3, positions: reduce, statisticsSamples: 2}"],
  ["kfac-dp", "{kind: kfac, form: dp, factorEvery: 2, inverseEvery: 4}"],
  ["kfac-kaisa", "{kind: kfac, form: kaisa, factorEvery: 2, inverseEvery: 4}"],
  ["eva-s", "{kind: eva-s}"],
  ["shampoo", "{kind: shampoo, rootsEvery: 5}"],
  ["muon", "{kind: muon}"],
  ["lars", "{kind: lars, coefficient: 0.1}"],
  ["lamb", "{kind: lamb}"],
];

/** What metrics tell of the update of each step. */
const figuresTold = (output: string): Record<string, number>[] =>
  readFileSync(join(folder, output, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>)
    .filter((line) => line["gradientNorm"] !== undefined);

/** The others go these ways in the full run of the tests. */
const resumed = ["eva", "kfac", "kfac-dp", "shampoo"];
const overTcp = ["kfac", "muon"];
const onlyIn = (few: readonly string[], name: string): { tags: string } | object =>
  few.includes(name) ? {} : { tags: "full" };

const tellsCurvature = ["eva", "eva-f", "kfac", "kfac-d", "kfac-dp", "kfac-kaisa", "eva-s"];

describe.each(optimizers)("%s", (name, optimizer) => {
  const setting = `optimizer=${optimizer}`;
  let whole: Buffer;
  beforeAll(async () => {
    whole = await train(name, [setting]);
  });

  test("learns, and tells how much curvature acts", () => {
    const losses = stepLosses(join(folder, name));
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
    const updates = figuresTold(name);
    expect(updates).toHaveLength(12);
    for (const { curvature, sizeFactor } of updates) {
      expect(curvature !== undefined).toBe(tellsCurvature.includes(name));
      if (curvature === undefined) continue;
      expect(curvature).toBeGreaterThanOrEqual(-1e-3);
      expect(curvature).toBeLessThanOrEqual(1);
      expect(sizeFactor).toBeGreaterThan(0);
    }
  });

  test("a run that was stopped goes on with the same bits", onlyIn(resumed, name), async () => {
    const parts = `${name}-parts`;
    await skeinTrain(
      folder,
      "run",
      "job.yaml",
      "--output",
      parts,
      "--steps",
      "7",
      ...[...plain, setting].flatMap((each) => ["--set", each]),
    );
    expect((await skeinTrain(folder, "resume", parts, "--steps", "12")).code).toBe(0);
    expect(saved(parts, 12).equals(whole)).toBe(true);
  });

  test("processes over TCP learn the same bits as threads", onlyIn(overTcp, name), async () => {
    expect((await train(`${name}-tcp`, [setting, "transport=tcp"])).equals(whole)).toBe(true);
  });

  test("gradients in halves, and all after the backward pass, too", { tags: "full" }, async () => {
    // Shampoo is not combined with halves.
    for (const overlap of name === "shampoo" ? ["none"] : ["dear", "none"])
      expect((await train(`${name}-${overlap}`, [setting, `overlap=${overlap}`])).equals(whole)).toBe(true);
  });

  test("with compressed gradients it trains, too", { tags: "full" }, async () => {
    await train(`${name}-top-k`, [setting, "compression={kind: top-k, density: 0.1}"]);
    expect(stepLosses(join(folder, `${name}-top-k`)).every(Number.isFinite)).toBe(true);
  });
});

test("a step that refreshes curvature has a name of its own in the trace", async () => {
  await train("traced", ["optimizer={kind: kfac, factorEvery: 2, inverseEvery: 4}"], "--trace", "traced.json");
  const trace = readFileSync(join(folder, "traced.json"), "utf8");
  for (const name of ["curvature observed", "curvature refreshed"]) expect(trace).toContain(name);
});

test("factors travel in the buckets that a job names, and arrive alike", async () => {
  const trainIn = (form: string, buckets: string): Promise<Buffer> =>
    train(
      `${form}-${buckets.length}`,
      [`optimizer={kind: kfac, form: ${form}, factorEvery: 2, inverseEvery: 4, factorBuckets: ${buckets}}`],
      "--trace",
      `${form}-${buckets.length}.json`,
    );
  const [apart, together, planned] = [
    "{kind: per-factor}",
    "{kind: fixed-size, bytes: 1000000000}",
    "{kind: planned}",
  ] as const;
  const messagesOf = (form: string, buckets: string): number => {
    const trace = readFileSync(join(folder, `${form}-${buckets.length}.json`), "utf8");
    return new Set(trace.match(/wait all-reduce statistics-\d+/g)).size;
  };
  for (const form of ["mpd", "spd"]) {
    expect(await trainIn(form, apart)).toEqual(await trainIn(form, together));
    expect([messagesOf(form, apart), messagesOf(form, together)]).toEqual([6, 1]);
  }
  await trainIn("mpd", planned);
  const plan = JSON.parse(
    readFileSync(join(folder, `mpd-${planned.length}`, "checkpoints/step-00000012/manifest.json"), "utf8"),
  ) as { plan: { curvature: { form: unknown; buckets: string[][] } } };
  expect(plan.plan.curvature.form).toEqual({ kind: "mpd" });
  expect(messagesOf("mpd", planned)).toBe(plan.plan.curvature.buckets.length);
});

test("on a grid of four ranks K-FAC learns what it learns where each rank does all, about, and goes on", async () => {
  const rows = [
    "{kind: kfac, form: d, factorEvery: 5, inverseEvery: 5}",
    "{kind: kfac, form: kaisa, factorEvery: 5, inverseEvery: 5}",
  ];
  for (const [i, optimizer] of rows.entries())
    await train(`grid-${i}`, [`optimizer=${optimizer}`, "ranks=4", "batch=8"]);
  const [all, grid] = rows.map((_, i) => stepLosses(join(folder, `grid-${i}`)));
  grid!.forEach((loss, step) => expect(loss).toBeCloseTo(all![step]!, 3));
  const { code, stderr } = await skeinTrain(folder, "resume", "grid-1", "--steps", "14");
  expect(stderr).not.toContain("rank ");
  expect(code).toBe(0);
});

test.each(["mpd", "dp"])("form %s: a factor that cannot be inverted is named, and what was done", async (form) => {
  const { code, stderr } = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--output",
    `stale-${form}`,
    "--steps",
    "3",
    ...[...plain, `optimizer={kind: kfac, form: ${form}, damping: 1.0e-17, inverseEvery: 10}`].flatMap((each) => [
      "--set",
      each,
    ]),
  );
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /step 1: the factor of layers\.0\.weight \(inputs\).* is not positive definite.*raise optimizer\.damping/,
  );
});

test.each([
  ["{kind: kfac, form: kaisa, gradientWorkers: 0.7}", /a share 0\.7 of 2 ranks is 1\.4 gradient workers, which do not/],
  ["{kind: kfac, form: dp, factorBuckets: {kind: per-factor}}", /with form: dp no factors travel; leave factorBuckets/],
  ["{kind: kfac, form: auto, factorBuckets: {kind: fixed-size}}", /with form: auto buckets are planned with the form/],
  ["{kind: kfac, factorBuckets: {kind: fixed-size, bytes: 0}}", /optimizer\.factorBuckets\.bytes/],
  ["{kind: kfac, damping: -1}", /optimizer\.damping is -1, but must be above 0/],
  ["{kind: kfac, factorEvery: 4, inverseEvery: 10}", /every 10 steps of factors that change every 4.*multiple of/],
  ["{kind: eva, statisticsSamples: 999}", /999 samples are to be looked at.*at most so many/],
  ["{kind: muon, momentum: 1}", /optimizer\.momentum/],
])("%s is refused in one line", async (optimizer, message) => {
  const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--set", `optimizer=${optimizer}`);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});

test("shampoo and overlap: dear are refused with the cure", async () => {
  const { code, stderr } = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--set",
    "optimizer={kind: shampoo}",
    "--set",
    "overlap=dear",
  );
  expect(code).toBe(2);
  expect(stderr).toMatch(/shampoo derives roots in its update.*use wait-free/);
});
