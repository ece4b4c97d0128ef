import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { type ConvolutionSizes, isPlainProduct } from "../contraction-scratch.ts";
import type { KernelCall, WasmExports } from "../kernel.ts";
import { inputGradientSizes } from "../ops/conv2d-backward-input.ts";
import { weightGradientSizes } from "../ops/conv2d-backward-weight.ts";
import { forwardSizes } from "../ops/conv2d.ts";
import { refusesOtherThanF32 } from "../ops/convolution.ts";
import type { BlasRow } from "./blas-row.ts";
import type { Contraction, Sgemm } from "./blas.ts";
import { productVariant } from "./matmul.ts";

type ConvolutionOp = "conv2d" | "conv2d-backward-input" | "conv2d-backward-weight";

/**
 * Values of the column matrix that are made at a time, 1 MiB of them: written, they are still in the second-level cache
 * when the product reads them, and a product has enough rows to be worth the library's own packing of the weights.
 */
const columnValues = 2 ** 18;

/** The product that a convolution is: pixels × columns of the column matrix, for each group. */
const productOf = (s: ConvolutionSizes): { pixels: number; depth: number; perGroup: number; outPerGroup: number } => {
  const perGroup = s.channels / s.groups;
  return {
    pixels: s.batch * s.outHeight * s.outWidth,
    depth: s.kernelHeight * s.kernelWidth * perGroup,
    perGroup,
    outPerGroup: s.outChannels / s.groups,
  };
};

/** Pixels per block of the column matrix. */
const blockOf = (s: ConvolutionSizes): number => {
  const { pixels, depth } = productOf(s);
  return Math.max(1, Math.min(pixels, Math.floor(columnValues / Math.max(1, depth))));
};

const columnBytes = (s: ConvolutionSizes): number => (isPlainProduct(s) ? 0 : 4 * blockOf(s) * productOf(s).depth);

/** Whether the sums have no terms, or there are none. */
const isEmpty = (s: ConvolutionSizes): boolean => productOf(s).depth * productOf(s).pixels * s.outChannels === 0;

/** The image and its sizes as `patches` and `addPatches` take them, after both addresses. */
const patchArguments = (s: ConvolutionSizes): number[] => [
  s.height,
  s.width,
  s.channels,
  s.channels / s.groups,
  s.kernelHeight,
  s.kernelWidth,
  s.outHeight,
  s.outWidth,
  s.strideY,
  s.strideX,
  s.top,
  s.left,
  s.dilationY,
  s.dilationX,
];

/**
 * Call `work` for each group and block of pixels: first pixel, how many, and the byte offsets of the group's channels.
 */
const forBlocks = (
  s: ConvolutionSizes,
  work: (first: number, count: number, inputBytes: number, outputBytes: number) => void,
): void => {
  const { pixels, perGroup, outPerGroup } = productOf(s);
  const block = blockOf(s);
  for (let group = 0; group < s.groups; group++)
    for (let first = 0; first < pixels; first += block)
      work(first, Math.min(block, pixels - first), 4 * group * perGroup, 4 * group * outPerGroup);
};

/** Address of a pixel's channels in y or its gradient. */
const pixelAt = (y: number, s: ConvolutionSizes, pixel: number): number => y + 4 * pixel * s.outChannels;

const forward = (s: ConvolutionSizes, wasm: WasmExports, sgemm: Sgemm): KernelCall => {
  const { depth, outPerGroup, pixels } = productOf(s);
  const { outChannels } = s;
  if (isEmpty(s)) return (_, [y]) => void wasm["fill32"]!(y!, 0, pixels * outChannels);
  if (isPlainProduct(s))
    return ([x, w], [y]) =>
      sgemm(0, 0, pixels, outChannels, depth, 1, x!, depth, w!, outChannels, 0, y!, outChannels, 1, 0, 0, 0);
  const image = patchArguments(s);
  return ([x, w], [y], columns) =>
    forBlocks(s, (first, count, from, to) => {
      wasm["patches"]!(x! + from, columns, ...image, first, count);
      const result = pixelAt(y!, s, first) + to;
      sgemm(
        0,
        0,
        count,
        outPerGroup,
        depth,
        1,
        columns,
        depth,
        w! + to,
        outChannels,
        0,
        result,
        outChannels,
        1,
        0,
        0,
        0,
      );
    });
};

const inputGradient = (s: ConvolutionSizes, wasm: WasmExports, sgemm: Sgemm): KernelCall => {
  const { depth, outPerGroup, pixels } = productOf(s);
  const { outChannels } = s;
  const values = s.batch * s.height * s.width * s.channels;
  if (isEmpty(s)) return (_, [x]) => void wasm["fill32"]!(x!, 0, values);
  if (isPlainProduct(s))
    return ([g, w], [x]) =>
      sgemm(0, 1, pixels, depth, outChannels, 1, g!, outChannels, w!, outChannels, 0, x!, depth, 1, 0, 0, 0);
  const image = patchArguments(s);
  return ([g, w], [x], columns) => {
    wasm["fill32"]!(x!, 0, values);
    forBlocks(s, (first, count, to, from) => {
      const gradient = pixelAt(g!, s, first) + from;
      sgemm(
        0,
        1,
        count,
        depth,
        outPerGroup,
        1,
        gradient,
        outChannels,
        w! + from,
        outChannels,
        0,
        columns,
        depth,
        1,
        0,
        0,
        0,
      );
      wasm["addPatches"]!(columns, x! + to, ...image, first, count);
    });
  };
};

const weightGradient = (s: ConvolutionSizes, wasm: WasmExports, sgemm: Sgemm): KernelCall => {
  const { depth, outPerGroup, pixels } = productOf(s);
  const { outChannels } = s;
  if (isEmpty(s)) return (_, [w]) => void wasm["fill32"]!(w!, 0, depth * outChannels);
  if (isPlainProduct(s))
    return ([x, g], [w]) =>
      sgemm(1, 0, depth, outChannels, pixels, 1, x!, depth, g!, outChannels, 0, w!, outChannels, 1, 0, 0, 0);
  const image = patchArguments(s);
  return ([x, g], [w], columns) =>
    forBlocks(s, (first, count, from, to) => {
      wasm["patches"]!(x! + from, columns, ...image, first, count);
      const gradient = pixelAt(g!, s, first) + to;
      const beta = first > 0 ? 1 : 0;
      sgemm(
        1,
        0,
        depth,
        outPerGroup,
        count,
        1,
        columns,
        depth,
        gradient,
        outChannels,
        beta,
        w! + to,
        outChannels,
        1,
        0,
        0,
        0,
      );
    });
};

interface Rule<Op extends ConvolutionOp> {
  readonly sizesOf: (node: KernelNode<OperatorParams[Op]>) => ConvolutionSizes;
  readonly bind: (s: ConvolutionSizes, wasm: WasmExports, sgemm: Sgemm) => KernelCall;
  /** As a product of its own, where it is one. */
  readonly plain: (s: ConvolutionSizes) => Omit<Contraction, "op">;
}

/**
 * A convolution or one of its gradients by patches: blocks of the column matrix are written, and multiplied while they
 * are near. A 1×1 one of all pixels is a product, and counts as one. Cost beside the product: the column matrix is
 * written and read once, 8 · pixels · depth bytes a group.
 */
const byPatches = <Op extends ConvolutionOp>(
  op: Op,
  { sizesOf, bind, plain }: Rule<Op>,
): BlasRow<OperatorParams[Op]> => ({
  contraction: (node) => {
    const sizes = sizesOf(node);
    if (isPlainProduct(sizes)) return { op: "matmul", ...plain(sizes) };
    const { pixels, depth, outPerGroup } = productOf(sizes);
    return { op, variant: "", rows: pixels, columns: outPerGroup, inner: depth };
  },
  kernel: (sgemm) => ({
    op,
    refuses: refusesOtherThanF32,
    scratchBytes: (node) => columnBytes(sizesOf(node)),
    bind: (node, wasm) => bind(sizesOf(node), wasm, sgemm),
  }),
});

export const blasConv2d: BlasRow<OperatorParams["conv2d"]> = byPatches("conv2d", {
  sizesOf: forwardSizes,
  bind: forward,
  plain: (s) => ({
    variant: productVariant(false, false),
    rows: productOf(s).pixels,
    columns: s.outChannels,
    inner: s.channels,
  }),
});

export const blasConv2dBackwardInput: BlasRow<OperatorParams["conv2d-backward-input"]> = byPatches(
  "conv2d-backward-input",
  {
    sizesOf: inputGradientSizes,
    bind: inputGradient,
    plain: (s) => ({
      variant: productVariant(false, true),
      rows: productOf(s).pixels,
      columns: s.channels,
      inner: s.outChannels,
    }),
  },
);

export const blasConv2dBackwardWeight: BlasRow<OperatorParams["conv2d-backward-weight"]> = byPatches(
  "conv2d-backward-weight",
  {
    sizesOf: weightGradientSizes,
    bind: weightGradient,
    plain: (s) => ({
      variant: productVariant(true, false),
      rows: s.channels,
      columns: s.outChannels,
      inner: productOf(s).pixels,
    }),
  },
);
