import { groupRanges, type KernelNode, type OperatorParams } from "@skein/tensor-core/backend";
import { integersAt } from "../run-time-integers.ts";
import type { Call, Team } from "../team/team.ts";
import { type Contraction, multiplyAddNanoseconds } from "../blas.ts";
import type { BlasRow } from "./blas-row.ts";
import { productVariant } from "./matmul.ts";
import type { RowSlices } from "./row-slices.ts";

/** Computes `count` rows, starting at `row`, of a group's product op(a) · b. */
type RowsOfProduct = (call: Call, row: number, count: number) => void;

/**
 * Returns the rows of a product that one part computes: a slice of the rows if every part gets a slice. If not, whole
 * products are assigned to the parts in turn, and a part computes all rows or none. In both cases the result is bitwise
 * identical to the whole product.
 */
const share = (
  slices: RowSlices,
  rows: number,
  group: number,
  [part, parts]: readonly [part: number, parts: number],
): readonly [row: number, end: number] => {
  if (slices.most(rows) >= parts) return [slices.begin(rows, part, parts), slices.begin(rows, part + 1, parts)];
  return group % parts === part ? [0, rows] : [0, 0];
};

const runShare = (
  slices: RowSlices,
  rows: number,
  group: number,
  parts: readonly [part: number, parts: number],
  call: Call,
  product: RowsOfProduct,
): void => {
  const [row, end] = share(slices, rows, group, parts);
  if (end > row) product(call, row, end - row);
};

/**
 * Returns the contraction of one product, for groups of average size. The contraction decides between BLAS and
 * WebAssembly, because the rows per group are known only at run time.
 */
const contractionOf = (
  variant: string,
  [rows, columns, inner]: readonly [rows: number, columns: number, inner: number],
): Contraction | undefined =>
  rows > 0 && columns > 0 && inner > 0
    ? { op: "matmul", variant, rows: Math.ceil(rows), columns, inner: Math.ceil(inner) }
    : undefined;

const partsOf = (team: Team, slices: RowSlices, work: number, rows: number, groups: number): number =>
  team.partsOf(work * multiplyAddNanoseconds, Math.max(groups, slices.most(rows)));

const sizesOf = ({ inputs: [x, w], outputs: [y] }: KernelNode): readonly [number, number, number, number] => [
  x!.shape[0]!,
  x!.shape[1]!,
  y!.shape[1]!,
  w!.shape[0]!,
];

/** Computes one product per group, directly on the rows of the group. */
export const blasGroupedMatmul: BlasRow<OperatorParams["grouped-matmul"]> = {
  contraction: (node) => {
    const [rows, inner, columns, groups] = sizesOf(node);
    return contractionOf(productVariant(false, node.params.transposeW), [rows / groups, columns, inner]);
  },
  kernel: (slices) => ({
    op: "grouped-matmul",
    bind: (node, _, memory, team) => {
      const [rows, inner, columns, groups] = sizesOf(node);
      const { transposeW } = node.params;
      const [tw, wStride] = transposeW ? [1, inner] : [0, columns];
      const [sgemm, fill32] = [team.indexOf("sgemm"), team.indexOf("fill32")];
      const integers = integersAt(memory);
      const parts = partsOf(team, slices, rows * inner * columns, rows, groups);
      return ([from, weights, counts], [to]) => {
        const ranges = groupRanges(integers(counts!, groups), rows);
        const done = ranges.at(-1)?.end ?? 0;
        team.run(parts, (part, call) => {
          ranges.forEach(({ begin, end }, group) =>
            runShare(slices, end - begin, group, [part, parts], call, (call, row, count) => {
              const [a, y] = [from! + 4 * (begin + row) * inner, to! + 4 * (begin + row) * columns];
              const b = weights! + 4 * group * inner * columns;
              call(sgemm, 0, tw, count, columns, inner, 1, a, inner, b, wStride, 0, y, columns, 1, 0, 0, 0);
            }),
          );
          if (part === 0) call(fill32, to! + 4 * done * columns, 0, (rows - done) * columns);
        });
      };
    },
  }),
};

/**
 * Computes one matrix product per group, whose sums run over the rows of the group. The result of a group without rows
 * is zero.
 */
export const blasGroupedMatmulBackwardWeight: BlasRow<OperatorParams["grouped-matmul-backward-weight"]> = {
  contraction: ({ inputs: [x, g], outputs: [dw] }) =>
    contractionOf(productVariant(true, false), [x!.shape[1]!, g!.shape[1]!, x!.shape[0]! / dw!.shape[0]!]),
  kernel: (slices) => ({
    op: "grouped-matmul-backward-weight",
    bind: (node, _, memory, team) => {
      const {
        inputs: [x, g],
        outputs: [dw],
      } = node;
      const [rows, inner] = x!.shape as [number, number];
      const columns = g!.shape[1]!;
      const groups = dw!.shape[0]!;
      const [sgemm, fill32] = [team.indexOf("sgemm"), team.indexOf("fill32")];
      const integers = integersAt(memory);
      const parts = partsOf(team, slices, rows * inner * columns, inner, groups);
      return ([from, gradients, counts], [to]) => {
        const ranges = groupRanges(integers(counts!, groups), rows);
        team.run(parts, (part, call) =>
          ranges.forEach(({ begin, end }, group) =>
            runShare(slices, inner, group, [part, parts], call, (call, row, count) => {
              const y = to! + 4 * (group * inner + row) * columns;
              if (end === begin) return call(fill32, y, 0, count * columns);
              const [a, b] = [from! + 4 * (begin * inner + row), gradients! + 4 * begin * columns];
              call(sgemm, 1, 0, count, columns, end - begin, 1, a, inner, b, columns, 0, y, columns, 1, 0, 0, 0);
            }),
          ),
        );
      };
    },
  }),
};
