import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { jobFolder, skeinTrain, stepLosses } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeAll(() => ({ folder, remove } = jobFolder()));
afterAll(() => remove());

/** Returns the checkpoint of a run after a number of steps. */
const saved = (output: string, steps: number): Buffer =>
  readFileSync(join(folder, output, `checkpoints/step-${String(steps).padStart(8, "0")}/shared.safetensors`));

/** A changing learning rate, so that the state of each optimizer shows the rate of each step. */
const plain = [
  "compression={kind: identity}",
  "model.hidden=[24, 16]",
  "learningRate={peak: 0.02, warmupSteps: 4, decay: step, everySteps: 5, factor: 0.5}",
  "checkpoint={everySteps: 7, keep: 2}",
];
const rates = [0.004, 0.008, 0.012, 0.016, 0.02, 0.02, 0.02, 0.02, 0.02, 0.01, 0.01, 0.01];

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
  ["kfac-spd", "{kind: kfac, form: spd, factorEvery: 2, inverseEvery: 4, blockSize: 10}"],
  ["kfac-pad", "{kind: kfac, form: pad, factorEvery: 2, inverseEvery: 4}"],
  ["kfac-eigen", "{kind: kfac, inverse: eigen, factorEvery: 2, inverseEvery: 4}"],
  ["kfac-auto", "{kind: kfac, form: auto, factorEvery: 2, inverseEvery: 4}"],
  ["kfac-dp", "{kind: kfac, form: dp, factorEvery: 2, inverseEvery: 4}"],
  ["kfac-kaisa", "{kind: kfac, form: kaisa, factorEvery: 2, inverseEvery: 4}"],
  [
    "kfac-dp-hybrid",
    "{kind: kfac, form: dp-hybrid, gradientWorkers: 1, blockSize: 10, factorEvery: 2, inverseEvery: 4}",
  ],
  ["eva-s", "{kind: eva-s}"],
  ["shampoo", "{kind: shampoo, rootsEvery: 5}"],
  ["soap", "{kind: soap, basesEvery: 5}"],
  ["muon", "{kind: muon}"],
  ["lars", "{kind: lars, coefficient: 0.1}"],
  ["lamb", "{kind: lamb}"],
];

/** Whether inversions are distributed according to measurements, so that two runs may add in different orders. */
const isPlanned = (name: string): boolean => ["kfac-spd", "kfac-auto"].includes(name);

/** Returns the reported metrics of the update of each step. */
const figuresTold = (output: string): Record<string, number>[] =>
  readFileSync(join(folder, output, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>)
    .filter((line) => line["gradientNorm"] !== undefined);

/** Optimizers trained in the default test run. The full test run also trains the remaining optimizers. */
const trained = ["eva", "kfac", "kfac-auto", "soap", "muon"];
const resumed = ["kfac-auto", "soap"];
const overTcp = ["kfac"];
const onlyIn = (few: readonly string[], name: string): { tags: string } | object =>
  few.includes(name) ? {} : { tags: "full" };

const tellsCurvature = (name: string): boolean => /^(eva|kfac)/.test(name);

describe.each(optimizers)("%s", (name, optimizer) => {
  const setting = `optimizer=${optimizer}`;
  let whole: Buffer;
  beforeAll(async () => {
    whole = await train(name, [setting]);
  });

  test("trains, and reports how much curvature acts", onlyIn(trained, name), () => {
    const losses = stepLosses(join(folder, name));
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
    const updates = figuresTold(name);
    expect(updates).toHaveLength(12);
    updates.forEach(({ learningRate }, step) => expect(learningRate).toBeCloseTo(rates[step]!, 6));
    for (const { curvature, sizeFactor } of updates) {
      expect(curvature !== undefined).toBe(tellsCurvature(name));
      if (curvature === undefined) continue;
      expect(curvature).toBeGreaterThanOrEqual(-1e-3);
      expect(curvature).toBeLessThanOrEqual(1);
      expect(sizeFactor).toBeGreaterThan(0);
    }
  });

  test("a stopped run resumes with the same bits", onlyIn(resumed, name), async () => {
    const parts = `${name}-parts`;
    // Two runs may plan differently, and therefore round differently, so the same run resumes from an earlier
    // checkpoint.
    if (isPlanned(name)) {
      cpSync(join(folder, name), join(folder, parts), { recursive: true });
      rmSync(join(folder, parts, "checkpoints/step-00000012"), { recursive: true });
      expect((await skeinTrain(folder, "resume", parts, "--steps", "12")).stderr).not.toContain("rank ");
      expect(saved(parts, 12).equals(whole)).toBe(true);
      return;
    }
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

  test("processes over TCP give the same bits as threads", onlyIn(overTcp, name), async () => {
    const overNetwork = await train(`${name}-tcp`, [setting, "transport=tcp"]);
    if (!isPlanned(name)) return void expect(overNetwork.equals(whole)).toBe(true);
    // Two plans may differ, and then add in different orders.
    const [losses, expected] = [`${name}-tcp`, name].map((output) => stepLosses(join(folder, output)));
    losses!.forEach((loss, step) => expect(loss).toBeCloseTo(expected![step]!, 2));
  });

  test("with split all-reduces, and with all after the backward pass, too", { tags: "full" }, async () => {
    // Shampoo and SOAP do not support split all-reduces, and two plans may differ.
    if (isPlanned(name)) return;
    for (const overlap of ["shampoo", "soap"].includes(name) ? ["none"] : ["dear", "none"])
      expect((await train(`${name}-${overlap}`, [setting, `overlap=${overlap}`])).equals(whole)).toBe(true);
  });

  test("with compressed gradients it trains, too", { tags: "full" }, async () => {
    await train(`${name}-top-k`, [setting, "compression={kind: top-k, density: 0.1}"]);
    expect(stepLosses(join(folder, `${name}-top-k`)).every(Number.isFinite)).toBe(true);
  });
});

test("a step that refreshes curvature has its own name in the trace", async () => {
  await train("traced", ["optimizer={kind: kfac, factorEvery: 2, inverseEvery: 4}"], "--trace", "traced.json");
  const trace = readFileSync(join(folder, "traced.json"), "utf8");
  for (const name of ["curvature observed", "curvature refreshed"]) expect(trace).toContain(name);
});

// A clipped gradient is a lazy product, which a rank may evaluate once or twice. Replicas are compared at the end.
const clipped = (optimizer: string): Promise<Buffer> =>
  train(`clipped${optimizer.replaceAll(/\W/g, "")}`, [`optimizer=${optimizer}`, "clipNorm=0.1"]);

test("replicated values stay equal where each rank does a part of the work, with clipped gradients", async () => {
  await clipped("{kind: muon}");
});

test.each([
  "{kind: soap, basesEvery: 2}",
  "{kind: shampoo, rootsEvery: 2}",
  "{kind: lars, weightDecay: 0.01}",
  "{kind: lamb}",
  "{kind: kfac, form: kaisa, gradientWorkers: 0, factorEvery: 1, inverseEvery: 2}",
  "{kind: kfac, form: mpd, factorEvery: 1, inverseEvery: 2}",
])("so it does with %s", { tags: "full" }, async (optimizer) => {
  await clipped(optimizer);
});

const readyJob = async (name: string): Promise<void> => {
  writeFileSync(join(folder, `${name}.yaml`), readFileSync(new URL(`../jobs/${name}.yaml`, import.meta.url)));
  const few = ["data.trainSamples=256", "data.testSamples=64", "evaluation.batch=32"];
  const { code, stderr } = await skeinTrain(
    folder,
    "run",
    `${name}.yaml`,
    "--steps",
    "3",
    ...few.flatMap((setting) => ["--set", setting]),
  );
  expect(stderr).not.toContain("rank ");
  expect(code).toBe(0);
};
test.each(["cnn-kfac-spd", "gpt-muon", "gpt-soap"])("the ready job %s trains", { tags: "full" }, readyJob);

test("K-FAC's plan is reported, with the cost of the other forms, and stored in the checkpoint", async () => {
  const { code, stderr } = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--output",
    "planned",
    "--steps",
    "3",
    ...[...plain, "optimizer={kind: kfac, form: auto}"].flatMap((each) => ["--set", each]),
  );
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /kfac in the form \w+.*6 factors are sent in \d buckets.*to a step on average, compared with .* ms/,
  );
  const manifest = readFileSync(join(folder, "planned/checkpoints/step-00000003/manifest.json"), "utf8");
  const { plan } = JSON.parse(manifest) as { readonly plan: { readonly curvature: { readonly buckets: string[][] } } };
  expect(plan.curvature.buckets.flat().toSorted()).toEqual(
    [0, 1, 2].flatMap((i) => ["gradient", "input"].map((side) => `layers.${i}.weight:${side}`)),
  );
});

test("factors are exchanged in the buckets that a job names, and arrive equal", { tags: "full" }, async () => {
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
  expect(await trainIn("mpd", apart)).toEqual(await trainIn("mpd", together));
  expect([messagesOf("mpd", apart), messagesOf("mpd", together)]).toEqual([6, 1]);
  await trainIn("mpd", planned);
  const plan = JSON.parse(
    readFileSync(join(folder, `mpd-${planned.length}`, "checkpoints/step-00000012/manifest.json"), "utf8"),
  ) as { plan: { curvature: { form: unknown; buckets: string[][] } } };
  expect(plan.plan.curvature.form).toEqual({ kind: "mpd" });
  expect(messagesOf("mpd", planned)).toBe(plan.plan.curvature.buckets.length);
});

test("on a grid of four ranks K-FAC gives about the result of replicated work, and resumes", {
  tags: "full",
}, async () => {
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

const tellsOfFactor = async (form: string): Promise<void> => {
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
};
test("form dp: a factor that cannot be inverted is reported with what was done", () => tellsOfFactor("dp"));
test("form mpd: it is reported, too", { tags: "full" }, () => tellsOfFactor("mpd"));

test.each([
  [
    "{kind: kfac, form: kaisa, gradientWorkers: 0.7}",
    /a share of 0\.7 of 2 ranks is 1\.4 gradient workers, which does not/,
  ],
  ["{kind: kfac, form: dp-hybrid}", /dp-hybrid distributes blocks of factors.*give blockSize/],
  [
    "{kind: kfac, form: dp, factorBuckets: {kind: per-factor}}",
    /with form: dp no factors are sent; leave factorBuckets/,
  ],
  [
    "{kind: kfac, form: auto, factorBuckets: {kind: fixed-size}}",
    /with form: auto buckets are planned together with the form/,
  ],
  ["{kind: kfac, factorBuckets: {kind: fixed-size, bytes: 0}}", /optimizer\.factorBuckets\.bytes/],
  ["{kind: kfac, damping: -1}", /optimizer\.damping is -1, but must be above 0/],
  ["{kind: kfac, factorEvery: 4, inverseEvery: 10}", /every 10 steps, but factors change every 4.*multiple of/],
  ["{kind: eva, statisticsSamples: 999}", /statistics need 999 samples.*at most \d+/],
  ["{kind: muon, momentum: 1}", /optimizer\.momentum/],
])("%s is refused in one line", async (optimizer, message) => {
  const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--set", `optimizer=${optimizer}`);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});

test.each(["shampoo", "soap"])("%s and overlap: dear are refused with the remedy", async (kind) => {
  const { code, stderr } = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--set",
    `optimizer={kind: ${kind}}`,
    "--set",
    "overlap=dear",
  );
  expect(code).toBe(2);
  expect(stderr).toMatch(new RegExp(`${kind} computes (roots|bases) in its update.*use wait-free`));
});
