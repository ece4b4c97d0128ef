// How near to memory bandwidth is softmax, and to the peak of one core attention? Run: node bench/softmax-attention.bench.ts
import { elementCount, operators, type Params, type Shape, type TensorSpec } from "@skein/tensor-core";
import { measure, printMeasurement } from "@skein/testing";
import { kernels } from "../src/kernel-table.ts";
import { openBench } from "./open-bench.ts";

const { bind, clear } = await openBench();

const run = async (name: string, op: string, inputs: readonly Shape[], params: Params, unit: "B" | "FLOP"): Promise<void> => {
  clear();
  const { call, check } = bind(kernels[op]!, inputs, params);
  call();
  check({ absolute: 1e-4, relative: 1e-4 });
  const specs = inputs.map((shape): TensorSpec => ({ dtype: "f32", shape }));
  const { flops, bytesRead, bytesWritten } = operators[op]!.cost(specs, operators[op]!.infer(specs, params), params);
  printMeasurement(`${name} ${op}`, await measure(call), { amount: unit === "FLOP" ? flops : bytesRead + bytesWritten, unit });
};

for (const shape of [[64, 10], [4096, 64], [2048, 1000], [128, 32_768]] as const) {
  for (const op of ["softmax", "log-softmax"]) {
    const name = `${shape.join("×")}, ${(elementCount(shape) * 4) >> 10} KiB`;
    await run(name, op, [shape], {}, "B");
    await run(name, `${op}-backward`, [shape, shape], {}, "B");
  }
}
for (const [batch, heads, positions, width] of [[8, 4, 64, 32], [4, 4, 256, 64], [1, 4, 1024, 64]] as const) {
  for (const causal of [false, true]) {
    const name = `B=${batch} H=${heads} T=${positions} D=${width}${causal ? " causal" : ""}`;
    const [x, rows] = [[batch, heads, positions, width], [batch, heads, positions]];
    const params = { causal, scale: 1 / Math.sqrt(width) };
    await run(name, "attention", [x, x, x], params, "FLOP");
    await run(name, "attention-backward", [x, x, x, x, rows, x], params, "FLOP");
  }
}
