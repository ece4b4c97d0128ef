// Measures convolutions and their gradients compared with the peak of one core, and the gradient of max pooling
// compared with memory bandwidth.
// Run: node bench/convolution.bench.ts
import { elementCount, type Shape } from "@skein/tensor-core";
import type { Params } from "@skein/tensor-core/backend";
import { measure, printMeasurement } from "@skein/measuring";
import { kernels } from "../src/kernel-table.ts";
import { openBench } from "./open-bench.ts";

interface Layer {
  readonly name: string;
  readonly x: Shape;
  readonly w: Shape;
  readonly stride: number;
  readonly padding: number;
  readonly groups?: number;
}

const layers: readonly Layer[] = [
  { name: "MNIST first, 28×28×1 to 32", x: [64, 28, 28, 1], w: [3, 3, 1, 32], stride: 1, padding: 1 },
  { name: "MNIST second, 14×14×32 to 64", x: [64, 14, 14, 32], w: [3, 3, 32, 64], stride: 1, padding: 1 },
  { name: "ResNet first, 32×32×3 to 64", x: [16, 32, 32, 3], w: [3, 3, 3, 64], stride: 1, padding: 1 },
  { name: "ResNet 32×32×64", x: [8, 32, 32, 64], w: [3, 3, 64, 64], stride: 1, padding: 1 },
  { name: "ResNet 32×32×64 to 128, stride 2", x: [8, 32, 32, 64], w: [3, 3, 64, 128], stride: 2, padding: 1 },
  { name: "ResNet shortcut 1×1, stride 2", x: [8, 32, 32, 64], w: [1, 1, 64, 128], stride: 2, padding: 0 },
  { name: "ResNet 8×8×256", x: [8, 8, 8, 256], w: [3, 3, 256, 256], stride: 1, padding: 1 },
  { name: "depthwise 32×32×64", x: [16, 32, 32, 64], w: [3, 3, 1, 64], stride: 1, padding: 1, groups: 64 },
  { name: "depthwise 14×14×256", x: [16, 14, 14, 256], w: [3, 3, 1, 256], stride: 1, padding: 1, groups: 256 },
];

/** Benchmark cases of pooling: adjacent windows, and overlapping windows. */
const poolings: readonly (readonly [name: string, x: Shape, window: number, stride: number])[] = [
  ["28×28×32, windows of 2", [64, 28, 28, 32], 2, 2],
  ["33×33×64, windows of 3 in steps of 2", [16, 33, 33, 64], 3, 2],
];

const { bind, clear } = await openBench();

for (const { name, x, w, stride, padding, groups = 1 } of layers) {
  const along = (dim: number): number => Math.floor((x[1 + dim]! + 2 * padding - w[dim]!) / stride) + 1;
  const y = [x[0]!, along(0), along(1), w[3]!];
  const params = {
    stride: [stride, stride],
    padding: [
      [padding, padding],
      [padding, padding],
    ],
    dilation: [1, 1],
    groups,
  };
  const flops = 2 * elementCount(y) * w[0]! * w[1]! * w[2]!;
  const run = async (op: string, inputs: readonly Shape[], own: Params): Promise<void> => {
    clear();
    const { call, check } = bind(kernels[op]!, inputs, own);
    call();
    check({ absolute: 2e-2, relative: 0 });
    printMeasurement(`${name} ${op}`, await measure(call), { amount: flops, unit: "FLOP" });
  };
  await run("conv2d", [x, w], params);
  await run("conv2d-backward-input", [y, w], { ...params, shape: x });
  await run("conv2d-backward-weight", [x, y], { ...params, shape: w });
}

for (const [name, x, window, stride] of poolings) {
  const [batch, height, width, channels] = x as [number, number, number, number];
  const along = (pixels: number): number => Math.floor((pixels - window) / stride) + 1;
  const y = [batch, along(height), along(width), channels];
  const none = [
    [0, 0],
    [0, 0],
  ];
  clear();
  const params = { window: [window, window], stride: [stride, stride], padding: none, dilation: [1, 1] };
  const { call, check } = bind(kernels["max-pool2d-backward"]!, [x, y], params);
  call();
  check({ absolute: 1e-5, relative: 0 });
  // The image is read, its gradient is written, and the cotangents are read.
  const bytes = 4 * (2 * elementCount(x) + elementCount(y));
  printMeasurement(`${name} max-pool2d-backward`, await measure(call), { amount: bytes, unit: "B" });
}
