// Measures the regret of each method of choosing a matmul variant, on held-out shapes. Reads times from earlier
// measurements.
// Run: node bench/held-out-regret.bench.ts [files that matmul-variants.bench.ts saved]
import { readFileSync } from "node:fs";
import {
  heldOutQuality,
  type MatmulMeasurement,
  selectionQuality,
  type SelectionQuality,
} from "../src/autotune/matmul-model.ts";

/**
 * Measured times of the matmul variants for one product, read from a file, and the variant that the selection rule for
 * devices without measurements chooses for this product.
 */
type Saved = MatmulMeasurement & { readonly rule: string };

const here = ["lavapipe-1.jsonl", "lavapipe-2.jsonl"].map((name) => new URL(`measured/${name}`, import.meta.url));

const printQuality = (way: string, { accuracy, regret }: SelectionQuality): void =>
  console.log(
    `  ${way.padEnd(40)} best in ${(100 * accuracy).toFixed(1).padStart(5)} %, slower by ${(100 * regret).toFixed(1).padStart(6)} %`,
  );

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
  if (heldOut !== undefined) printQuality("nearest product, its shape held out", heldOut);
  printQuality(
    "rule of unmeasured devices",
    selectionQuality(samples, ({ request }) => rule(request)),
  );
  const names = new Set(samples.flatMap(({ seconds }) => Object.keys(seconds)));
  for (const name of names) {
    if (samples.every(({ seconds }) => seconds[name] !== undefined))
      printQuality(
        `always ${name}`,
        selectionQuality(samples, () => name),
      );
  }
}
