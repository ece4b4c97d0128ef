import type { DeviceFacts, Pass } from "../../kernel.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { type Fold, foldText, type Lanes, type Sink, type Source, treeText, workgroupSize } from "./fold.ts";
import { unroll, unrolledText } from "./loop.ts";
import { wgsl } from "../../wgsl.ts";

/** Distribution of the rows of a fold over invocations. */
export interface RowGeometry {
  readonly lanes: Lanes;
  /** Number of invocations per row, a power of two. */
  readonly perRow: number;
  /** Number of workgroups per row; more than 1 only if `perRow` is the size of a workgroup. */
  readonly parts: number;
  /** Number of registers that each workgroup of a row reads. */
  readonly chunk: number;
}

/** Returns the number of workgroups that fill a device. */
export const workgroupsWanted = (facts: DeviceFacts): number => (facts.software ? 32 : 512);

/** Maximum number of registers that one invocation adds in sequence. Bounds the rounding error of long sums. */
const maxChain = 64 * unroll;

/**
 * Returns the distribution of rows of `size` elements. Does not depend on the number of rows. The order in which the
 * states of a row are combined follows from the geometry, so the result of a row is bitwise identical for any batch
 * size.
 *
 * @param groupsWanted Maximum number of workgroups that share one long row.
 */
export const rowGeometry = (size: number, groupsWanted: number): RowGeometry => {
  const lanes = size % 4 === 0 ? 4 : 1;
  const registers = Math.max(1, size / lanes);
  // Each invocation should run a single loop iteration.
  const perRow = Math.min(workgroupSize, powerOfTwoAbove(registers / (unroll + 1)));
  if (perRow < workgroupSize) return { lanes, perRow, parts: 1, chunk: registers };
  const most = Math.max(1, Math.floor(registers / (workgroupSize * unroll)));
  const least = Math.ceil(registers / (workgroupSize * maxChain));
  const chunk = Math.ceil(registers / Math.max(least, Math.min(groupsWanted, most)));
  return { lanes, perRow, parts: Math.ceil(registers / chunk), chunk };
};

/**
 * Folds each of `rows` rows with `size` elements, in registers of `lanes` elements. The state of part p for row r is
 * written to `p · rows + r`. Reads all data once.
 */
export const rowsPass = (
  fold: Fold,
  source: Source,
  sink: Sink,
  { rows, size }: { readonly rows: number; readonly size: number },
  { lanes, perRow, parts, chunk }: RowGeometry,
): Pass => {
  const rowsPerGroup = workgroupSize / perRow;
  const code = wgsl`
    ${foldText(fold, lanes, true)}
    ${source.code(lanes, true)}
    ${unrolledText(source, lanes)}
    ${sink.code(1)}
    ${treeText(fold, lanes === 1 ? "State" : "Result", 1, perRow, 1)}
    fn main(group: u32, lane: u32) {
      let rank = lane % ${perRow}u;
      let row = ${parts > 1 ? `group % sizes.rows` : rowsPerGroup === 1 ? "group" : `group * ${rowsPerGroup}u + lane / ${perRow}u`};
      let part = ${parts > 1 ? "group / sizes.rows" : "0u"};
      let first = row * sizes.registers;
      let end = select(0u, first + sizes.registers, row < sizes.rows);
      let begin = first + part * sizes.chunk;
      let stop = min(begin + sizes.chunk, end);
      var s = start_State();
      var v = begin + rank;
      for (; v + ${(unroll - 1) * perRow}u < stop; v += ${unroll * perRow}u) { s = join_State(s, lift_turn(v, ${perRow}u, ${lanes}u * (v - first), ${lanes * perRow}u, row)); }
      for (; v < stop; v += ${perRow}u) { s = join_State(s, lift(v, ${lanes}u * (v - first), row)); }
      let result = tree(lane, rank, narrow(s));
      if (rank == 0u && row < sizes.rows) { store(part * sizes.rows + row, result); }
    }
  `;
  return {
    label: `${fold.label} rows, ${parts > 1 ? `${parts} workgroups each` : `${perRow} invocations each`}`,
    bindings: [...source.bindings(lanes, true), ...sink.bindings(1)],
    workgroupSize,
    groups: parts > 1 ? parts * rows : Math.ceil(rows / rowsPerGroup),
    code,
    sizes: { rows, registers: size / lanes, chunk },
  };
};
