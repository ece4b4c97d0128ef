import { avgPool2d, globalAvgPool, maxPool2d, NdArray, type Padding, type Pair, type Shape } from "@skein/tensor-core";
import { emitOne } from "@skein/tensor-core/backend";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";

interface Geometry {
  readonly name: string;
  readonly x: Shape;
  readonly window: Pair;
  readonly stride?: Pair;
  readonly padding?: Padding;
}

const geometries: readonly Geometry[] = [
  { name: "2×2", x: [2, 6, 4, 8], window: [2, 2] },
  { name: "2×2, odd image and channels", x: [2, 7, 5, 5], window: [2, 2] },
  { name: "2×2, fours of channels in an odd image", x: [2, 5, 7, 12], window: [2, 2] },
  { name: "one channel", x: [1, 6, 7, 1], window: [3, 2] },
  {
    name: "windows overlap",
    x: [2, 7, 9, 6],
    window: [3, 3],
    stride: [2, 2],
    padding: [
      [1, 1],
      [1, 1],
    ],
  },
  {
    name: "windows overlap, asymmetric padding",
    x: [1, 6, 5, 7],
    window: [4, 3],
    stride: [1, 2],
    padding: [
      [3, 0],
      [1, 2],
    ],
  },
  { name: "gaps between windows", x: [1, 9, 8, 3], window: [2, 1], stride: [3, 4] },
  { name: "one pixel", x: [3, 1, 1, 4], window: [1, 1] },
  { name: "the whole image", x: [2, 4, 5, 9], window: [4, 5] },
  { name: "no images", x: [0, 4, 4, 3], window: [2, 2] },
  { name: "no channels", x: [2, 4, 4, 0], window: [2, 2] },
];

const rowsOf = ({
  name,
  x,
  window,
  stride = window,
  padding = [
    [0, 0],
    [0, 0],
  ],
}: Geometry): ConformanceCase[] => {
  const options = { window, stride, padding };
  const params = { ...options, dilation: [1, 1] };
  const along = (dim: 0 | 1): number =>
    Math.floor((x[1 + dim]! + padding[dim][0] + padding[dim][1] - window[dim]) / stride[dim]) + 1;
  const y = [x[0]!, along(0), along(1), x[3]!];
  const average = (countPadding: boolean): ConformanceCase[] => [
    {
      op: "avg-pool2d",
      name: `${name}${countPadding ? "" : ", pixels only"}`,
      fn: (a) => avgPool2d(a!, { ...options, countPadding }),
      inputs: [normalArray(x, 1)],
      gradient: [0],
    },
    {
      op: "avg-pool2d-backward",
      name: `${name}${countPadding ? "" : ", pixels only"}`,
      fn: (g) => emitOne("avg-pool2d-backward", [g!], { ...params, countPadding, shape: x }),
      inputs: [normalArray(y, 2)],
      gradient: [0],
    },
  ];
  return [
    { op: "max-pool2d", name, fn: (a) => maxPool2d(a!, options), inputs: [normalArray(x, 1)], gradient: [0] },
    {
      op: "max-pool2d-backward",
      name,
      fn: (a, g) => emitOne("max-pool2d-backward", [a!, g!], params),
      inputs: [normalArray(x, 1), normalArray(y, 2)],
    },
    ...average(true),
    ...average(false),
  ];
};

// Values are 0, 1 or 2, so most windows have ties. The gradient must go only to the first maximum of a window.
const ties: ConformanceCase = {
  op: "max-pool2d-backward",
  name: "ties go to the first",
  fn: (a, g) =>
    emitOne("max-pool2d-backward", [a!, g!], {
      window: [3, 3],
      stride: [2, 2],
      padding: [
        [1, 1],
        [1, 1],
      ],
      dilation: [1, 1],
    }),
  inputs: [
    NdArray.from(uniformArray([2, 9, 9, 7], 0, 3, 3, "i32").toNumbers(), [2, 9, 9, 7]),
    normalArray([2, 5, 5, 7], 4),
  ],
};

const negative: ConformanceCase = {
  op: "max-pool2d",
  name: "all negative: padding must not win",
  fn: (a) => maxPool2d(a!, { window: 3, stride: 2, padding: "same" }),
  inputs: [uniformArray([1, 6, 6, 5], -9, -1, 5)],
  gradient: [0],
};

export const poolingCases: readonly ConformanceCase[] = [
  ...geometries.flatMap(rowsOf),
  ties,
  negative,
  {
    op: "avg-pool2d",
    name: "global",
    fn: (a) => globalAvgPool(a!),
    inputs: [normalArray([2, 3, 5, 6], 6)],
    gradient: [0],
  },
];
