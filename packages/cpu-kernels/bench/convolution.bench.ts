// How near to the peak of one core are convolutions and their gradients? Run: node bench/convolution.bench.ts
import { operators, type Shape } from "@skein/tensor-core";
import type { Kernel, KernelNode } from "../src/kernel.ts";
import { kernels } from "../src/kernel-table.ts";
import { openBench, report, time } from "./measure.ts";

interface Layer {
  readonly name: string;
  readonly x: Shape;
  readonly w: Shape;
  readonly stride: number;
  readonly padding: number;
}

const layers: readonly Layer[] = [
  { name: "MNIST first, 28×28×1 to 32", x: [64, 28, 28, 1], w: [3, 3, 1, 32], stride: 1, padding: 1 },
  { name: "MNIST second, 14×14×32 to 64", x: [64, 14, 14, 32], w: [3, 3, 32, 64], stride: 1, padding: 1 },
  { name: "ResNet first, 32×32×3 to 64", x: [16, 32, 32, 3], w: [3, 3, 3, 64], stride: 1, padding: 1 },
  { name: "ResNet 32×32×64", x: [8, 32, 32, 64], w: [3, 3, 64, 64], stride: 1, padding: 1 },
  { name: "ResNet 32×32×64 to 128, stride 2", x: [8, 32, 32, 64], w: [3, 3, 64, 128], stride: 2, padding: 1 },
  { name: "ResNet shortcut 1×1, stride 2", x: [8, 32, 32, 64], w: [1, 1, 64, 128], stride: 2, padding: 0 },
  { name: "ResNet 8×8×256", x: [8, 8, 8, 256], w: [3, 3, 256, 256], stride: 1, padding: 1 },
];

const count = (shape: Shape): number => shape.reduce((product, size) => product * size, 1);
const { wasm, floats, view, clear } = await openBench();

const measure = (name: string, kernel: Kernel, inputs: readonly Shape[], output: Shape, params: KernelNode["params"], flops: number): void => {
  clear();
  const spec = (shape: Shape) => ({ dtype: "f32" as const, shape });
  const node: KernelNode = { op: kernel.op, inputs: inputs.map(spec), outputs: [spec(output)], params };
  const addresses = Int32Array.from(inputs, (shape) => floats(count(shape)));
  const results = Int32Array.of(floats(count(output)));
  const scratch = floats((kernel.scratchBytes?.(node) ?? 0) / 4);
  const run = kernel.bind(node, wasm);
  const call = (): void => run(addresses, results, scratch, 0);
  call();
  const operands = inputs.map((shape, i) => ({ spec: spec(shape), data: Float64Array.from(view(addresses[i]!, count(shape))) }));
  const [expected] = operators[kernel.op]!.reference(operands, params, node.outputs);
  view(results[0]!, count(output)).forEach((value, i) => {
    if (!(Math.abs(value - expected![i]!) <= 2e-2)) throw new Error(`${name}: element ${i} is ${value}, the reference says ${expected![i]}`);
  });
  report(`${name} ${kernel.op}`, flops, time(call));
};

for (const { name, x, w, stride, padding } of layers) {
  const along = (dim: number): number => Math.floor((x[1 + dim]! + 2 * padding - w[dim]!) / stride) + 1;
  const y = [x[0]!, along(0), along(1), w[3]!];
  const params = { stride: [stride, stride], padding: [[padding, padding], [padding, padding]], dilation: [1, 1], groups: 1 };
  const flops = 2 * count(y) * w[0]! * w[1]! * w[2]!;
  measure(name, kernels["conv2d"]!, [x, w], y, params, flops);
  measure(name, kernels["conv2d-backward-input"]!, [y, w], x, { ...params, shape: x }, flops);
  measure(name, kernels["conv2d-backward-weight"]!, [x, y], w, { ...params, shape: w }, flops);
}
