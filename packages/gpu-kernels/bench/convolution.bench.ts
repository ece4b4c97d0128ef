// Measures convolutions and their gradients: the layers of the digit reader at batch 128, and of ResNet-18 at batch 32.
// Run: node bench/convolution.bench.ts
import { conv2d, elementCount, maxPool2d, type Shape } from "@skein/tensor-core";
import { emitOne } from "@skein/tensor-core/backend";
import { normalArray } from "@skein/testing";
import { benchKernels, type KernelRow } from "./kernel-bench.ts";

interface Layer {
  readonly name: string;
  readonly x: Shape;
  readonly w: Shape;
  readonly stride: number;
}

const layers: readonly Layer[] = [
  { name: "MNIST first, 28×28×1 to 32", x: [128, 28, 28, 1], w: [3, 3, 1, 32], stride: 1 },
  { name: "MNIST second, 14×14×32 to 64", x: [128, 14, 14, 32], w: [3, 3, 32, 64], stride: 1 },
  { name: "ResNet first, 32×32×3 to 64", x: [32, 32, 32, 3], w: [3, 3, 3, 64], stride: 1 },
  { name: "ResNet 32×32×64", x: [32, 32, 32, 64], w: [3, 3, 64, 64], stride: 1 },
  { name: "ResNet 32×32×64 to 128, stride 2", x: [32, 32, 32, 64], w: [3, 3, 64, 128], stride: 2 },
  { name: "ResNet shortcut 1×1, stride 2", x: [32, 32, 32, 64], w: [1, 1, 64, 128], stride: 2 },
  { name: "ResNet 16×16×128", x: [32, 16, 16, 128], w: [3, 3, 128, 128], stride: 1 },
  { name: "ResNet 8×8×256", x: [32, 8, 8, 256], w: [3, 3, 256, 256], stride: 1 },
  { name: "ResNet 4×4×512", x: [32, 4, 4, 512], w: [3, 3, 512, 512], stride: 1 },
];

const convolutions = layers.flatMap(({ name, x, w, stride }): KernelRow[] => {
  const side = (w[0]! - 1) / 2;
  const along = (dim: 1 | 2): number => Math.floor((x[dim]! + 2 * side - w[0]!) / stride) + 1;
  const y = [x[0]!, along(1), along(2), w[3]!];
  const padding = [
    [side, side],
    [side, side],
  ] as const;
  const params = { stride: [stride, stride], padding, dilation: [1, 1], groups: 1 } as const;
  const flops = 2 * elementCount(y) * elementCount(w.slice(0, 3));
  const bytes = 4 * (elementCount(x) + elementCount(w) + elementCount(y));
  // Tolerance for sums over all pixels of a batch, whose rounding depends on the order of additions.
  const tolerance = 2e-2;
  return [
    {
      name,
      fn: (a, b) => conv2d(a!, b!, { stride, padding }),
      inputs: () => [normalArray(x, 1), normalArray(w, 2)],
      flops,
      bytes,
      tolerance,
    },
    {
      name: `${name}, to the image`,
      fn: (g, b) => emitOne("conv2d-backward-input", [g!, b!], { ...params, shape: x }),
      inputs: () => [normalArray(y, 3), normalArray(w, 2)],
      flops,
      bytes,
      tolerance,
    },
    {
      name: `${name}, to the weight`,
      fn: (a, g) => emitOne("conv2d-backward-weight", [a!, g!], { ...params, shape: w }),
      inputs: () => [normalArray(x, 1), normalArray(y, 3)],
      flops,
      bytes,
      tolerance,
    },
  ];
});

const image = [128, 28, 28, 32];
const pooled = [128, 14, 14, 32];

await benchKernels("Convolution and pooling", [
  ...convolutions,
  {
    name: "maximum 2×2 of 28×28×32",
    fn: (x) => maxPool2d(x!, { window: 2 }),
    inputs: () => [normalArray(image, 1)],
    flops: 0,
    bytes: 4 * (elementCount(image) + elementCount(pooled)),
  },
  {
    name: "maximum 2×2 of 28×28×32, gradient",
    fn: (x, g) =>
      emitOne("max-pool2d-backward", [x!, g!], {
        window: [2, 2],
        stride: [2, 2],
        dilation: [1, 1],
        padding: [
          [0, 0],
          [0, 0],
        ],
      }),
    inputs: () => [normalArray(image, 1), normalArray(pooled, 2)],
    flops: 0,
    bytes: 4 * (2 * elementCount(image) + elementCount(pooled)),
  },
]);
