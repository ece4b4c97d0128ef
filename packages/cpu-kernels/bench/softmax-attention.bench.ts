// Measures softmax compared with memory bandwidth, and attention compared with the peak of one core.
// Run: node bench/softmax-attention.bench.ts
import { elementCount, type Shape, type TensorSpec } from "@skein/tensor-core";
import { operators, type Params } from "@skein/tensor-core/backend";
import { measure, printMeasurement } from "@skein/measuring";
import { kernels } from "../src/kernel-table.ts";
import { openBench } from "./open-bench.ts";

const { bind, clear } = await openBench();

/**
 * Checks a kernel, times it, and returns its outputs. `given` maps input positions to values, for inputs that depend on
 * other inputs.
 */
const run = async (
  name: string,
  op: string,
  inputs: readonly Shape[],
  params: Params,
  unit: "B" | "FLOP",
  given: Readonly<Record<number, Float32Array>> = {},
): Promise<readonly Float32Array[]> => {
  const bound = bind(kernels[op]!, inputs, params);
  for (const [position, values] of Object.entries(given)) bound.inputs[Number(position)]!.set(values);
  bound.call();
  // Sums over a row of values up to 1 have rounding errors of up to its width · 2⁻²⁴.
  bound.check({ absolute: 1e-4 + inputs[0]!.at(-1)! * 2 ** -24, relative: 1e-4 });
  const specs = inputs.map((shape): TensorSpec => ({ dtype: "f32", shape }));
  const { flops, bytesRead, bytesWritten } = operators[op]!.cost(specs, operators[op]!.infer(specs, params), params);
  printMeasurement(`${name} ${op}`, await measure(bound.call), {
    amount: unit === "FLOP" ? flops : bytesRead + bytesWritten,
    unit,
  });
  return bound.outputs;
};

for (const shape of [
  [64, 10],
  [4096, 64],
  [2048, 1000],
  [128, 32_768],
] as const) {
  for (const op of ["softmax", "log-softmax"]) {
    clear();
    const name = `${shape.join("×")}, ${(elementCount(shape) * 4) >> 10} KiB`;
    const [y] = await run(name, op, [shape], {}, "B");
    await run(name, `${op}-backward`, [shape, shape], {}, "B", { 0: y! });
  }
}
for (const [batch, heads, positions, width] of [
  [8, 4, 64, 32],
  [4, 4, 256, 64],
  [1, 4, 1024, 64],
] as const) {
  for (const causal of [false, true]) {
    clear();
    const name = `B=${batch} H=${heads} T=${positions} D=${width}${causal ? " causal" : ""}`;
    const [x, rows] = [
      [batch, heads, positions, width],
      [batch, heads, positions],
    ];
    const params = { causal, scale: 1 / Math.sqrt(width) };
    const [out, logSums] = await run(name, "attention", [x, x, x], params, "FLOP");
    await run(name, "attention-backward", [x, x, x, x, rows, x], params, "FLOP", { 3: out!, 4: logSums! });
  }
}
