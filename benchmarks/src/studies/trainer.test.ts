import { expect, test } from "vitest";
import type { Run } from "./run.ts";
import { complaintOf, train } from "./trainer.ts";

const run: Run = {
  name: "a/b",
  job: { batch: 32 },
  files: { "links.json": "{}" },
  core: true,
  warmUpSteps: 1,
  minutes: 1,
  expected: { seconds: 1, prefix: "a" },
};

/** Returns the command of a substitute trainer that runs `body`, with its arguments as `args`. */
const trainer = (body: string): string[] => [
  process.execPath,
  "--input-type=module",
  "--eval",
  `import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
const args = process.argv.slice(1);
${body}`,
  "--",
];

const summary = {
  testLoss: 0.5,
  testAccuracy: 0.75,
  bytesSentPerRank: 300,
  denseBytesPerRank: 1200,
  peakMemoryBytes: 9,
  seconds: 1,
};

test("figures come from summary and metrics; warm-up is left out", async () => {
  const outcome = await train(
    run,
    trainer(`
if (args.join(" ") !== "run job.json --json --quiet --output run --max-restarts 0") throw new Error(args.join(" "));
if (JSON.parse(readFileSync("job.json", "utf8")).batch !== 32 || !existsSync("links.json")) throw new Error("no job");
mkdirSync("run");
const step = (samplesPerSecond, exposedSeconds) => JSON.stringify({ type: "step", samplesPerSecond, exposedSeconds });
writeFileSync("run/metrics.jsonl", [step(1, 9), step(320, 0.02), step(640, 0.04), '{"type":"evaluation"}'].join("\\n") + "\\n");
console.log("a line before");
console.log('${JSON.stringify(summary)}');`),
  );
  expect(outcome).toMatchObject({
    kind: "done",
    testAccuracy: 0.75,
    steps: 3,
    bytesSentPerStep: 100,
    denseBytesPerStep: 400,
    stepSeconds: { n: 2 },
    exposedSeconds: { n: 2 },
  });
  if (outcome.kind !== "done") throw new Error();
  expect(outcome.stepSeconds.median).toBeCloseTo(0.075, 12);
  expect(outcome.exposedSeconds!.median).toBeCloseTo(0.03, 12);
});

test("a run with a cycle and stages is traced, and has what was planned of it", async () => {
  const outcome = await train(
    { ...run, cycle: 2, stages: [{ stage: "inverses", matches: "inverse/" }] },
    trainer(`
if (args.slice(-2).join(" ") !== "--trace trace.json") throw new Error(args.join(" "));
mkdirSync("run/last", { recursive: true });
writeFileSync("run/last/manifest.json", '{"plan":{"curvature":{"form":{"kind":"pad","fraction":0.5}}}}');
const lines = [9, 0.1, 0.3, 0.1, 0.3].map((seconds) => JSON.stringify({ type: "step", samplesPerSecond: 32 / seconds }));
writeFileSync("run/metrics.jsonl", lines.join("\\n"));
const span = (cat, ts, dur, scope) => JSON.stringify({ name: cat, cat, ph: "X", pid: 0, ts, dur, args: { scope } });
const spans = [0, 1, 2, 3, 4].flatMap((step) => [
  span("steps", 1e6 * step, 5e5),
  ...(step % 2 === 0 ? [span("compute", 1e6 * step, 2e5, "inverse/a")] : []),
]);
writeFileSync("trace.json", ["{", ...spans.map((line) => line + ","), "{}]}"].join("\\n"));
console.log('${JSON.stringify({ ...summary, checkpoint: "run/last" })}');`),
  );
  expect(outcome).toMatchObject({ kind: "done", form: "pad 0.5", stageSeconds: { rest: { n: 4 } } });
  if (outcome.kind !== "done") throw new Error();
  expect(outcome.cycleSeconds!.median).toBeCloseTo(0.2, 12);
  expect(outcome.stageSeconds!["inverses"]!.median).toBeCloseTo(0.1, 12);
  expect(outcome.stageSeconds!["rest"]!.median).toBeCloseTo(0.4, 12);
});

test.each([
  [
    "diverged",
    1,
    ["step 4: dense.weight is not finite (loss NaN); the update was not made"],
    "step 4: dense.weight is not finite",
  ],
  ["diverged", 2, ["rank 3: step 982: the loss is not finite (loss NaN)"], "rank 3: step 982: the loss is not finite"],
  [
    "refused",
    2,
    ["job.json:1:1: compression.kind: is no-such", "job.json:2:1: seed: is -1"],
    "job.json:1:1: compression.kind: is no-such",
  ],
  [
    "failed",
    1,
    ["begun", "TypeError: of a|b", "    at somewhere (file.ts:1)", "rank 2: has ended"],
    "TypeError: of a\\|b; then rank 2: has ended",
  ],
  ["failed", 1, [], "it said nothing"],
])("a bad end is %s, with its reason in a line", async (kind, code, lines, reason) => {
  const outcome = await train(
    run,
    trainer(`process.stderr.write(${JSON.stringify(lines.join("\n"))}); process.exitCode = ${code};`),
  );
  expect(outcome).toEqual({
    kind,
    reason: expect.stringMatching(new RegExp(`^${reason.replaceAll(/[|\\]/g, "\\$&")}`)),
  });
});

test("a run that ends with a held-out loss that is not finite has diverged", async () => {
  const outcome = await train(
    run,
    trainer(`mkdirSync("run");
writeFileSync("run/metrics.jsonl", '{"type":"step","samplesPerSecond":1}\\n');
console.log('${JSON.stringify({ ...summary, testLoss: NaN })}');`),
  );
  expect(outcome).toEqual({ kind: "diverged", reason: "the held-out loss is not finite" });
});

test("a run that takes too long is given up", async () => {
  const outcome = await train({ ...run, minutes: 0.2 / 60 }, trainer("setTimeout(() => {}, 100_000);"));
  expect(outcome.kind).toBe("too-long");
});

test("the trainer is asked to check a job", async () => {
  expect(
    await complaintOf(run, trainer('if (args.join(" ") !== "validate job.json") throw new Error(args.join(" "));')),
  ).toBeUndefined();
  expect(await complaintOf(run, trainer('console.error("seed: is -1"); process.exitCode = 2;'))).toBe("seed: is -1");
});
