// Trains on samples and with a model defined in this program, on two ranks; stops early, resumes, and uses the
// parameters.
// Run: pnpm exec node examples/own-data.ts
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { arrayRecords } from "@skein/data";
import { mlp } from "@skein/models";
import { evaluate, NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import { train } from "skein-train";

/** Returns points on three arms of a spiral. @returns inputs f32 [count, 2], labels i32 [count]. */
const spirals = (count: number, turn: number): { readonly inputs: NdArray; readonly labels: NdArray } => {
  const points = Array.from({ length: count }, (_, i) => {
    const radius = (0.95 * i) / count + 0.05;
    const angle = 4 * radius + 2.1 * (i % 3) + turn;
    return [radius * Math.sin(angle), radius * Math.cos(angle)];
  });
  return {
    inputs: NdArray.from(points.flat(), [count, 2]),
    labels: NdArray.from(
      points.map((_, i) => i % 3),
      [count],
      "i32",
    ),
  };
};

const heldOut = spirals(300, 0.05);
const model = mlp({ sizes: [2, 48, 3] });
const job = {
  name: "spirals",
  ranks: 2,
  batch: 60,
  epochs: 20,
  data: { train: arrayRecords(spirals(900, 0)), test: arrayRecords(heldOut), predicts: "classes", classes: 3 },
  model,
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.01 },
} as const;

const output = join(mkdtempSync(join(tmpdir(), "skein-")), "run");
const stop = new AbortController();
const first = await train(job, {
  output,
  signal: stop.signal,
  onStep: ({ step }) => (step === 100 ? stop.abort() : undefined),
});
console.log(`stopped after step ${first.step} of ${first.totalSteps}`);

const { summary, parameters } = await train(job, { output, resume: true });
console.log(`${(100 * summary!.testAccuracy!).toFixed(1)} % of the held-out points are right`);

const classOf = evaluate(
  (params: ReturnType<typeof model.init>["params"], x: Tensor) => model.apply(params, {}, x, { train: false })[0],
  referenceBackend(),
);
const scores = await classOf(parameters(), NdArray.from([0.5, 0.5], [1, 2]));
console.log(
  "the point (0.5, 0.5) scores",
  scores
    .toNumbers()
    .map((score) => score.toFixed(1))
    .join(", "),
);
