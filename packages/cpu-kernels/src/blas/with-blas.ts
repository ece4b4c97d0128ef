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

/**
 * Casts a table row for one operator to a `BlasRow` for any operator. The cast is safe, because each row is only used
 * for nodes of its operator.
 */
const asRow = (row: unknown): BlasRow => row as BlasRow;

/**
 * Operators that compute one product per group of rows. The choice of the implementation uses the sizes of an average
 * group.
 */
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

/**
 * Combines the WebAssembly kernel and the BLAS kernel into one kernel, which uses the implementation that the BLAS
 * prefers for each node.
 */
const either = (plain: Kernel, byBlas: Kernel, prefersBlas: (node: KernelNode) => boolean): Kernel => {
  const chosen = (node: KernelNode): Kernel => (prefersBlas(node) ? byBlas : plain);
  return {
    op: plain.op,
    ...(plain.refuses && { refuses: plain.refuses }),
    scratchBytes: (node, threads) => chosen(node).scratchBytes?.(node, threads) ?? 0,
    bind: (node, wasm, memory, team) => chosen(node).bind(node, wasm, memory, team),
  };
};

/**
 * Returns a kernel table in which the kernels of contractions use the BLAS for the contractions that the BLAS computes
 * faster (`prefers`). All other kernels are unchanged.
 */
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
