// How much slower than the best is each way of choosing a variant of matmul, on shapes that it has not seen? Reads times that were measured before.
// Run: node bench/held-out-regret.bench.ts [files that matmul-variants.bench.ts saved]
import { readFileSync } from "node:fs";
import { rankClasses, trainBoostedTrees } from "../src/autotune/gradient-boosted-trees.ts";
import { heldOutQuality, type MatmulMeasurement, selectionQuality, type SelectionQuality } from "../src/autotune/matmul-model.ts";

/** A measurement, and what the rule of unmeasured devices chooses for it. */
type Saved = MatmulMeasurement & { readonly rule: string };

const here = ["lavapipe-1.jsonl", "lavapipe-2.jsonl"].map((name) => new URL(`measured/${name}`, import.meta.url));

const tell = (way: string, { accuracy, regret }: SelectionQuality): void =>
  console.log(
    `  ${way.padEnd(40)} best in ${(100 * accuracy).toFixed(1).padStart(5)} %, slower by ${(100 * regret).toFixed(1).padStart(6)} %`,
  );

const featuresOf = ({ batch, rows, columns, inner, transposeA, transposeB, dtype }: MatmulMeasurement["request"]): number[] => {
  const logs = [rows, columns, inner, batch].map((size) => Math.log2(Math.max(1, size)));
  const [m, n, k, b] = logs as [number, number, number, number];
  return [...logs, Number(transposeA), Number(transposeB), Number(dtype === "f16"), m + n + k + b, m + n + b];
};

/** Trees that learned, from the products of all other shapes, which variant is the best. */
const treesHeldOut = (samples: readonly Saved[]): SelectionQuality => {
  const shapeOf = ({ request: { batch, rows, columns, inner } }: Saved): string => [batch, rows, columns, inner].join("x");
  const bestOf = ({ seconds }: Saved): string => Object.keys(seconds).reduce((p, q) => (seconds[q]! < seconds[p]! ? q : p));
  const choices = new Map<MatmulMeasurement, string>();
  for (const shape of new Set(samples.map(shapeOf))) {
    const seen = samples.filter((sample) => shapeOf(sample) !== shape);
    const variants = [...new Set(seen.map(bestOf))].sort();
    const trees = trainBoostedTrees(
      seen.map(({ request }) => featuresOf(request)),
      seen.map((sample) => variants.indexOf(bestOf(sample))),
      variants.length,
    );
    for (const sample of samples.filter((each) => shapeOf(each) === shape)) {
      const names = rankClasses(trees, featuresOf(sample.request)).map((label) => variants[label]!);
      choices.set(sample, names.find((name) => sample.seconds[name] !== undefined) ?? sample.rule);
    }
  }
  return selectionQuality(samples, (sample) => choices.get(sample)!);
};

const [, , ...named] = process.argv;
for (const file of named.length > 0 ? named : here) {
  const samples = readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line): Saved => JSON.parse(line));
  const rules = new Map(samples.map(({ request, rule }) => [request, rule]));
  const rule = (request: MatmulMeasurement["request"]): string => rules.get(request)!;
  console.log(`${file}: ${samples.length} products`);
  const heldOut = heldOutQuality(samples, rule);
  if (heldOut !== undefined) tell("nearest product, its shape held out", heldOut);
  tell("boosted trees, its shape held out", treesHeldOut(samples));
  tell(
    "rule of unmeasured devices",
    selectionQuality(samples, ({ request }) => rule(request)),
  );
  const names = new Set(samples.flatMap(({ seconds }) => Object.keys(seconds)));
  for (const name of names) {
    if (samples.every(({ seconds }) => seconds[name] !== undefined))
      tell(
        `always ${name}`,
        selectionQuality(samples, () => name),
      );
  }
}
