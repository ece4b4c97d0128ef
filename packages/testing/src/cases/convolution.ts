import { conv2d, type Padding, type Pair, type Shape } from "@skein/tensor-core";
import { emitOne } from "@skein/tensor-core/backend";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray } from "../seeded.ts";

interface Geometry {
  readonly name: string;
  readonly x: Shape;
  readonly w: Shape;
  readonly stride?: Pair;
  readonly padding?: Padding;
  readonly dilation?: Pair;
  readonly groups?: number;
}

const geometries: readonly Geometry[] = [
  { name: "3×3", x: [2, 5, 6, 3], w: [3, 3, 3, 4] },
  {
    name: "3×3, same size",
    x: [2, 5, 6, 3],
    w: [3, 3, 3, 5],
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  {
    name: "one channel in",
    x: [2, 7, 9, 1],
    w: [3, 3, 1, 9],
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  {
    name: "one channel in, five by five, stride 2",
    x: [2, 8, 9, 1],
    w: [5, 5, 1, 3],
    stride: [2, 2],
    padding: [
      [2, 1],
      [0, 2],
    ],
  },
  { name: "one channel out", x: [1, 4, 5, 6], w: [2, 3, 6, 1] },
  { name: "1×1", x: [2, 3, 5, 7], w: [1, 1, 7, 6] },
  { name: "1×1, stride 2", x: [2, 5, 6, 4], w: [1, 1, 4, 6], stride: [2, 2] },
  { name: "one by one of everything", x: [1, 1, 1, 1], w: [1, 1, 1, 1] },
  { name: "kernel as large as the image", x: [3, 4, 5, 2], w: [4, 5, 2, 3] },
  {
    name: "kernel larger than the image",
    x: [1, 2, 2, 2],
    w: [3, 3, 2, 2],
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  { name: "stride 2 × 3", x: [2, 7, 11, 3], w: [3, 2, 3, 4], stride: [2, 3] },
  { name: "stride larger than the kernel", x: [1, 9, 9, 2], w: [2, 2, 2, 3], stride: [3, 4] },
  { name: "dilation 2 × 3", x: [1, 7, 9, 2], w: [3, 2, 2, 3], dilation: [2, 3] },
  {
    name: "stride 2 with dilation 2",
    x: [1, 9, 8, 2],
    w: [3, 3, 2, 3],
    stride: [2, 2],
    dilation: [2, 2],
    padding: [
      [2, 2],
      [2, 2],
    ],
  },
  {
    name: "asymmetric padding",
    x: [1, 4, 5, 2],
    w: [3, 3, 2, 3],
    padding: [
      [2, 0],
      [1, 3],
    ],
  },
  {
    name: "padding larger than the kernel",
    x: [1, 2, 3, 2],
    w: [2, 2, 2, 3],
    padding: [
      [3, 2],
      [0, 4],
    ],
  },
  { name: "two groups", x: [2, 5, 5, 6], w: [3, 3, 3, 4], groups: 2 },
  {
    name: "two groups, stride and dilation",
    x: [1, 9, 8, 4],
    w: [2, 3, 2, 6],
    groups: 2,
    stride: [2, 1],
    dilation: [1, 2],
    padding: [
      [1, 1],
      [0, 1],
    ],
  },
  {
    name: "depthwise",
    x: [1, 5, 6, 5],
    w: [3, 3, 1, 5],
    groups: 5,
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  {
    name: "depthwise, stride 2 with dilation 2",
    x: [1, 6, 9, 5],
    w: [3, 2, 1, 5],
    groups: 5,
    stride: [2, 2],
    dilation: [1, 2],
    padding: [
      [1, 1],
      [1, 2],
    ],
  },
  { name: "depthwise, two outputs each", x: [1, 5, 4, 3], w: [2, 2, 1, 6], groups: 3 },
  { name: "no images", x: [0, 5, 6, 3], w: [3, 3, 3, 4] },
  { name: "no channels in", x: [2, 5, 6, 0], w: [3, 3, 0, 4] },
  { name: "no channels out", x: [2, 5, 6, 3], w: [3, 3, 3, 0] },
];

// Geometries that exceed the kernels' blocks in pixels, taps and channels. They have too many elements for central
// differences.
const large: readonly Geometry[] = [
  {
    name: "many pixels",
    x: [3, 19, 21, 5],
    w: [3, 3, 5, 19],
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  {
    name: "many channels in",
    x: [1, 5, 5, 67],
    w: [3, 3, 67, 9],
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  {
    name: "depthwise, many channels",
    x: [2, 9, 14, 23],
    w: [3, 3, 1, 23],
    groups: 23,
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  // Tiles of 4 × 4 pixels at all borders, with partial tiles at the ends.
  {
    name: "3×3 with fours of channels",
    x: [3, 15, 16, 24],
    w: [3, 3, 24, 28],
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  {
    name: "3×3 with fours of channels, asymmetric padding",
    x: [3, 15, 19, 24],
    w: [3, 3, 24, 28],
    padding: [
      [0, 2],
      [3, 0],
    ],
  },
  { name: "many channels out", x: [1, 5, 6, 9], w: [3, 3, 9, 133], stride: [2, 1] },
  {
    name: "many pixels, one channel in",
    x: [5, 28, 28, 1],
    w: [3, 3, 1, 32],
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
];

const rowsOf = (
  {
    name,
    x,
    w,
    stride = [1, 1],
    padding = [
      [0, 0],
      [0, 0],
    ],
    dilation = [1, 1],
    groups = 1,
  }: Geometry,
  differentiate: boolean,
): ConformanceCase[] => {
  const params = { stride, padding, dilation, groups };
  const along = (dim: 0 | 1): number =>
    Math.floor((x[1 + dim]! + padding[dim][0] + padding[dim][1] - (w[dim]! - 1) * dilation[dim] - 1) / stride[dim]) + 1;
  const y = [x[0]!, along(0), along(1), w[3]!];
  const gradient = differentiate ? { gradient: [0, 1] } : {};
  // Number of terms of the longest sum. The weight gradient sums over all pixels of all images.
  const terms = Math.max(w[0]! * w[1]! * w[2]!, w[0]! * w[1]! * w[3]!, y[0]! * y[1]! * y[2]!, 1);
  const tolerance = { absolute: 4e-6 * Math.sqrt(terms), relative: 1e-5 };
  return [
    {
      op: "conv2d",
      name,
      fn: (a, b) => conv2d(a!, b!, params),
      inputs: [normalArray(x, 1), normalArray(w, 2)],
      tolerance,
      ...gradient,
    },
    {
      op: "conv2d-backward-input",
      name,
      fn: (g, b) => emitOne("conv2d-backward-input", [g!, b!], { ...params, shape: x }),
      inputs: [normalArray(y, 3), normalArray(w, 2)],
      tolerance,
      ...gradient,
    },
    {
      op: "conv2d-backward-weight",
      name,
      fn: (a, g) => emitOne("conv2d-backward-weight", [a!, g!], { ...params, shape: w }),
      inputs: [normalArray(x, 1), normalArray(y, 3)],
      tolerance,
      ...gradient,
    },
  ];
};

export const convolutionCases: readonly ConformanceCase[] = [
  ...geometries.flatMap((geometry) => rowsOf(geometry, true)),
  ...large.flatMap((geometry) => rowsOf(geometry, false)),
];
