import { elementCount } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import { alignUp } from "../arena.ts";
import { type ConvolutionSizes, isPlainProduct } from "../contraction-scratch.ts";
import { inputGradientSizes } from "../ops/conv2d-backward-input.ts";
import { weightGradientSizes } from "../ops/conv2d-backward-weight.ts";
import { forwardSizes } from "../ops/conv2d.ts";
import { refusesOtherThanF32 } from "../ops/convolution.ts";
import { partBegin } from "../team/team.ts";
import { suitsWinograd } from "../winograd.ts";
import { type BindConvolution, bindRows } from "./bind-convolution.ts";
import type { BlasRow } from "./blas-row.ts";
import { type Contraction, multiplyAddNanoseconds } from "../blas.ts";
import { blockOf, blocksOf, columnBytes, isEmpty, patchArguments, pixelAt, productOf } from "./column-matrix.ts";
import { inputGradient, weightGradient } from "./convolution-gradients.ts";
import { productVariant } from "./matmul.ts";

type ConvolutionOp = "conv2d" | "conv2d-backward-input" | "conv2d-backward-weight";

const forward: BindConvolution = (s, team, slices) => {
  const { depth, outPerGroup, pixels } = productOf(s);
  const { outChannels } = s;
  if (isPlainProduct(s))
    return bindRows(team, slices, {
      rows: pixels,
      columns: outChannels,
      inner: depth,
      flags: [0, 0],
      aRow: depth,
      aStride: depth,
      bStride: outChannels,
    });
  const image = patchArguments(s);
  const patches = team.indexOf("patches");
  const sgemm = team.indexOf("sgemm");
  const blocks = blocksOf(s);
  // Threads share the rows of each block, or whole blocks if a product cannot be split.
  const most = slices.most(blockOf(s));
  const parts = team.partsOf(pixels * depth * s.outChannels * multiplyAddNanoseconds, Math.max(most, blocks.length));
  const byRows = most >= parts;
  return ([x, w], [y], scratch) =>
    team.run(parts, (part, call) => {
      const columns = scratch + part * alignUp(columnBytes(s));
      const [from, to] = byRows
        ? [0, blocks.length]
        : [partBegin(blocks.length, part, parts), partBegin(blocks.length, part + 1, parts)];
      for (const { first, count, inImage, inResult } of blocks.slice(from, to)) {
        const begin = byRows ? slices.begin(count, part, parts) : 0;
        const rows = (byRows ? slices.begin(count, part + 1, parts) : count) - begin;
        if (rows === 0) continue;
        call(patches, x! + inImage, columns, ...image, first + begin, rows, 0, depth);
        const result = pixelAt(y!, s, first + begin) + inResult;
        const [weights, stride] = [w! + inResult, outChannels];
        call(sgemm, 0, 0, rows, outPerGroup, depth, 1, columns, depth, weights, stride, 0, result, stride, 1, 0, 0, 0);
      }
    });
};

/**
 * Wraps the bind function of a convolution. If the sums of the convolution have no terms, the wrapper fills the results
 * with zeros.
 */
const bindAny =
  (bind: BindConvolution, values: number): BindConvolution =>
  (s, team, slices) => {
    if (!isEmpty(s)) return bind(s, team, slices);
    const fill = team.indexOf("fill32");
    return (_, [result]) => team.run(1, (_part, call) => call(fill, result!, 0, values));
  };

interface Rule<Op extends ConvolutionOp> {
  readonly sizesOf: (node: KernelNode<OperatorParams[Op]>) => ConvolutionSizes;
  readonly bind: BindConvolution;
  /** Returns the sizes of the product for a convolution that is a plain matrix product. */
  readonly plain: (s: ConvolutionSizes) => Omit<Contraction, "op">;
}

/**
 * Implements a convolution or one of its gradients with the column matrix: blocks of the column matrix are written,
 * then multiplied while they are in the cache. A 1×1 convolution of all pixels is computed as a plain product.
 * Additional cost: the column matrix is written and read once, 8 · pixels · depth bytes per group.
 */
const byPatches = <Op extends ConvolutionOp>(
  op: Op,
  { sizesOf, bind, plain }: Rule<Op>,
): BlasRow<OperatorParams[Op]> => ({
  contraction: (node) => {
    const sizes = sizesOf(node);
    if (isPlainProduct(sizes)) return { op: "matmul", ...plain(sizes) };
    const { pixels, depth, outPerGroup } = productOf(sizes);
    return { op, variant: suitsWinograd(sizes) ? "winograd" : "", rows: pixels, columns: outPerGroup, inner: depth };
  },
  kernel: (slices) => ({
    op,
    refuses: refusesOtherThanF32,
    scratchBytes: (node, threads) => threads * alignUp(columnBytes(sizesOf(node))),
    bind: (node, _, __, team) => bindAny(bind, elementCount(node.outputs[0]!.shape))(sizesOf(node), team, slices),
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
