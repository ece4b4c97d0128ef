// Measures all matmul variants for many products, and the quality of the choices made by the rule and by a trained
// model.
// Run: node bench/matmul-variants.bench.ts [largest side of the squares] [file for the times]
// The file is input for held-out-regret.bench.ts.
import { writeFileSync } from "node:fs";
import { createWebGpuBackend } from "../src/index.ts";
import {
  type MatmulMeasurement,
  choicesFrom,
  selectionQuality,
  trainMatmulModel,
} from "../src/autotune/matmul-model.ts";
import { defaultRequests, measureMatmul } from "../src/autotune/measure-matmul.ts";
import { staticChoice } from "../src/kernels/matmul/choose.ts";
import { flopsOf, layoutOf } from "../src/kernels/matmul/product.ts";
import { openNodeGpu } from "../src/node.ts";

const backend = await createWebGpuBackend({ gpu: await openNodeGpu() });
const { facts } = backend;
const [, , side, file] = process.argv;
const largest = Number(side ?? (facts.software ? 256 : 2048));
const squares = [256, 512, 1024, 2048]
  .filter((size) => size <= largest)
  .flatMap((size) =>
    [
      [false, false],
      [false, true],
      [true, false],
      [true, true],
    ].map(([transposeA, transposeB]) => ({
      batch: 1,
      rows: size,
      columns: size,
      inner: size,
      transposeA: transposeA!,
      transposeB: transposeB!,
      dtype: "f32" as const,
    })),
  );
const requests = [...squares, ...defaultRequests(facts)];
console.log(`${facts.adapter}: ${requests.length} products`);
const { samples, rejected } = await measureMatmul(backend, { requests });
for (const { variant, request, reason } of rejected)
  console.log(`rejected: ${variant} for ${JSON.stringify(request)}: ${reason}`);

const rule = (request: MatmulMeasurement["request"]): string =>
  staticChoice({ ...request, resultDtype: request.dtype }, facts).name;
if (file !== undefined) {
  const lines = samples.map((sample) => JSON.stringify({ ...sample, rule: rule(sample.request) }));
  writeFileSync(file, `${lines.join("\n")}\n`);
}
for (const { request, seconds } of samples.slice(0, squares.length)) {
  console.log(`${request.rows} ${layoutOf(request)}, by rule ${rule(request)}`);
  for (const [name, time] of Object.entries(seconds).sort(([, p], [, q]) => p - q))
    console.log(
      `  ${name.padEnd(40)} ${(1e3 * time).toFixed(3).padStart(10)} ms ${(flopsOf(request) / time / 1e9).toFixed(1).padStart(8)} GFLOP/s`,
    );
}
const model = trainMatmulModel(facts.adapter, samples, { rule });
const { matmulVariant } = choicesFrom(model, facts);
const printQuality = (what: string, { accuracy, regret }: { accuracy: number; regret: number }): void =>
  console.log(
    `${what.padEnd(48)} best in ${(100 * accuracy).toFixed(1)} %, slower than the best by ${(100 * regret).toFixed(1)} %`,
  );
printQuality(
  "rule of unmeasured devices",
  selectionQuality(samples, ({ request }) => rule(request)),
);
printQuality(`best fixed choice (${model.fallback})`, model.fallbackQuality);
if (model.heldOut !== undefined) printQuality("nearest product, its shape held out", model.heldOut);
printQuality(
  `model with ${model.products.length} products, on what was measured`,
  selectionQuality(samples, ({ request }) => matmulVariant!(request)),
);
backend.close();
