import type { ContractionOp } from "@skein/cpu-kernels";
import { attention, conv2d, matmul, type Shape, type Tensor, vjp } from "@skein/tensor-core";

/**
 * Kernel to measure: a function whose graph has one node of the measured operator, and the shapes of the function's
 * inputs.
 */
export interface MeasuredKernel {
  readonly op: ContractionOp;
  readonly fn: (...inputs: Tensor[]) => readonly Tensor[];
  readonly shapes: readonly Shape[];
}

const sizes = [1, 8, 32, 128, 512, 2048];
/**
 * Maximum number of scalar multiplications in a matrix product to measure. Larger products would take long and add no
 * information.
 */
const maxMultiplications = 2 ** 28;

const transposes = [
  [false, false],
  [false, true],
  [true, false],
] as const;

const products = transposes.flatMap(([transposeA, transposeB]) =>
  sizes.flatMap((rows) =>
    sizes.flatMap((columns) =>
      sizes
        .filter((inner) => rows * columns * inner <= maxMultiplications)
        .map(
          (inner): MeasuredKernel => ({
            op: "matmul",
            fn: (a, b) => [matmul(a!, b!, { transposeA, transposeB })],
            shapes: [transposeA ? [inner, rows] : [rows, inner], transposeB ? [columns, inner] : [inner, columns]],
          }),
        ),
    ),
  ),
);

const imagesPerBatch = 8;

const convolve = (stride: number, x: Tensor, w: Tensor): Tensor => conv2d(x, w, { stride, padding: "same" });

/**
 * Gradient operators of a convolution, each with the index of the operand whose gradient the operator computes: 0 for
 * the images, 1 for the weights. The forward pass is removed from the graph, because its result is not used.
 */
const gradients: readonly (readonly [ContractionOp, operand: 0 | 1])[] = [
  ["conv2d-backward-input", 0],
  ["conv2d-backward-weight", 1],
];

/**
 * Convolutions to measure: 3×3 kernels on images of three sizes. Convolutions with many channels are also measured with
 * a stride of two pixels, which WebAssembly computes with a different algorithm.
 */
const convolutions = [8, 16, 32].flatMap((size) =>
  [1, 8, 32, 128].flatMap((channels) =>
    [8, 32, 128].flatMap((outChannels) =>
      (size >= 16 && channels >= 32 && outChannels >= 32 ? [1, 2] : [1]).flatMap((stride): MeasuredKernel[] => {
        const x = [imagesPerBatch, size, size, channels];
        const w = [3, 3, channels, outChannels];
        const g = [imagesPerBatch, size / stride, size / stride, outChannels];
        return [
          { op: "conv2d", fn: (x, w) => [convolve(stride, x!, w!)], shapes: [x, w] },
          ...gradients.map(
            ([op, operand]): MeasuredKernel => ({
              op,
              fn: (x, w, g) => [vjp(([x, w]: Tensor[]) => convolve(stride, x!, w!), [x!, w!]).pullback(g!)[operand]!],
              shapes: [x, w, g],
            }),
          ),
        ];
      }),
    ),
  ),
);

const headsPerBatch = 4;

/**
 * Attention sizes to measure, [number of queries, number of keys]: complete sequences, and a single query that attends
 * to many earlier keys.
 */
const lengths = [
  [1, 64],
  [1, 1024],
  [16, 16],
  [64, 64],
  [256, 256],
  [1024, 1024],
] as const;

const attentions = lengths.flatMap(([queries, keys]) =>
  [16, 64, 128].flatMap((width) =>
    [false, true].flatMap((causal): MeasuredKernel[] => {
      const [q, k] = [
        [1, headsPerBatch, queries, width],
        [1, headsPerBatch, keys, width],
      ];
      const attend = (q: Tensor, k: Tensor, v: Tensor): Tensor => attention(q, k, v, { causal });
      return [
        { op: "attention", fn: (q, k, v) => [attend(q!, k!, v!)], shapes: [q!, k!, k!] },
        {
          op: "attention-backward",
          fn: (q, k, v, g) => vjp(([q, k, v]: Tensor[]) => attend(q!, k!, v!), [q!, k!, v!]).pullback(g!),
          shapes: [q!, k!, k!, q!],
        },
      ];
    }),
  ),
);

/**
 * All kernels to measure: matrix products of 1 to 2048 rows in three transpositions, convolutions and their gradients,
 * attention and its gradient.
 */
export const measuredKernels: readonly MeasuredKernel[] = [...products, ...convolutions, ...attentions];
