import type { KernelNode } from "@skein/tensor-core/backend";
import type { Kernel } from "../kernel.ts";
import type { KernelTable } from "../kernel-table.ts";
import { blasAttention, blasAttentionBackward } from "./attention.ts";
import type { BlasRow } from "./blas-row.ts";
import type { Blas, ContractionOp } from "../blas.ts";
import { blasConv2d, blasConv2dBackwardInput, blasConv2dBackwardWeight } from "./convolution.ts";
import { blasGroupedMatmul, blasGroupedMatmulBackwardWeight } from "./grouped-matmul.ts";
import { blasMatmul } from "./matmul.ts";
import { RowSlices } from "./row-slices.ts";

/** Its nodes have the parameters of its operator. */
const asRow = (row: unknown): BlasRow => row as BlasRow;

/** Operators that are a product for each group of rows; chosen by what is known of that of a mean group. */
export const groupedOps = ["grouped-matmul", "grouped-matmul-backward-weight"] as const;

const rows: { readonly [op in ContractionOp | (typeof groupedOps)[number]]: BlasRow } = {
  matmul: asRow(blasMatmul),
  conv2d: asRow(blasConv2d),
  "conv2d-backward-input": asRow(blasConv2dBackwardInput),
  "conv2d-backward-weight": asRow(blasConv2dBackwardWeight),
  attention: asRow(blasAttention),
  "attention-backward": asRow(blasAttentionBackward),
  "grouped-matmul": asRow(blasGroupedMatmul),
  "grouped-matmul-backward-weight": asRow(blasGroupedMatmulBackwardWeight),
};

/** The kernel of WebAssembly and the one by a BLAS as one, which for each node is the one that the BLAS prefers. */
const either = (plain: Kernel, byBlas: Kernel, prefersBlas: (node: KernelNode) => boolean): Kernel => {
  const chosen = (node: KernelNode): Kernel => (prefersBlas(node) ? byBlas : plain);
  return {
    op: plain.op,
    ...(plain.refuses && { refuses: plain.refuses }),
    scratchBytes: (node, threads) => chosen(node).scratchBytes?.(node, threads) ?? 0,
    bind: (node, wasm, memory, team) => chosen(node).bind(node, wasm, memory, team),
  };
};

/** Kernels that let products run on a BLAS where it says that this is faster. Everything else is as it was. */
export const withBlas = (kernels: KernelTable, blas: Blas): KernelTable => {
  const slices = new RowSlices(blas.sliceRows);
  const chosen = Object.entries(rows).map(([op, { contraction, kernel }]): [string, Kernel] => [
    op,
    either(kernels[op]!, kernel(slices), (node) => {
      const work = contraction(node);
      return work !== undefined && blas.prefers(work);
    }),
  ]);
  return { ...kernels, ...Object.fromEntries(chosen) };
};
