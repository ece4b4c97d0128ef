import type { DeviceFacts, Pass } from "../../kernel.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { type Fold, foldText, type Lanes, type Sink, type Source, treeText, workgroupSize } from "./fold.ts";
import { turn, turnText } from "./loop.ts";
import { wgsl } from "../../wgsl.ts";

/** How rows of neighbours are spread over invocations. */
export interface RowGeometry {
  readonly lanes: Lanes;
  /** Invocations that share a row, a power of two. */
  readonly perRow: number;
  /** Workgroups that share a row; only where `perRow` is the whole workgroup. */
  readonly parts: number;
  /** Registers of a part. */
  readonly chunk: number;
}

/** Workgroups that fill a device. */
export const workgroupsWanted = (facts: DeviceFacts): number => (facts.software ? 32 : 512);

/** Registers that one invocation joins one after the other at most: bounds the rounding of long sums. */
const longestChain = 64 * turn;

/** @param groupsWanted workgroups that several share a row for. */
export const rowGeometry = (rows: number, size: number, groupsWanted: number): RowGeometry => {
  const whole = size % 4 === 0 || rows === 1;
  const registers = Math.max(1, Math.ceil(size / 4) + (whole ? 0 : 1));
  // A turn each; fewer where that leaves the device idle.
  let perRow = Math.min(workgroupSize, powerOfTwoAbove(registers / (turn + 1)));
  while (perRow < workgroupSize && perRow < registers && rows * perRow < (groupsWanted * workgroupSize) / 2)
    perRow *= 2;
  if (perRow < workgroupSize) return { lanes: 4, perRow, parts: 1, chunk: registers };
  const wanted = Math.ceil(groupsWanted / rows);
  const most = Math.max(1, Math.floor(registers / (workgroupSize * turn)));
  const least = Math.ceil(registers / (workgroupSize * longestChain));
  const chunk = Math.ceil(registers / Math.max(least, Math.min(wanted, most)));
  return { lanes: 4, perRow, parts: Math.ceil(registers / chunk), chunk };
};

/**
 * Fold each of `rows` rows of `size` neighbours, in registers of four whatever the row's beginning: what belongs to
 * other rows is masked. The state of part p of row r goes to `p · rows + r`. Reads everything once.
 */
export const rowsPass = (
  fold: Fold,
  source: Source,
  sink: Sink,
  { rows, size }: { readonly rows: number; readonly size: number },
  { lanes, perRow, parts, chunk }: RowGeometry,
): Pass => {
  const masked = size % 4 !== 0;
  const rowsPerGroup = workgroupSize / perRow;
  const take = masked
    ? wgsl`
      fn take(v: u32, row: u32) -> State {
        let element = 4u * v + vec4<u32>(0u, 1u, 2u, 3u);
        let first = row * sizes.size;
        return keep(lift(v, 4u * v - first, row), (element >= vec4<u32>(first)) & (element < vec4<u32>(first + sizes.size)));
      }
    `
    : "fn take(v: u32, row: u32) -> State { return lift(v, 4u * v - row * sizes.size, row); }";
  // Whole turns only between the masked ends of a row.
  const inside = masked ? `let calm = min(stop, (first + sizes.size) / 4u);` : "let calm = stop;";
  const code = wgsl`
    ${foldText(fold, lanes, true)}
    ${source.code(lanes, true)}
    ${turnText(source, lanes)}
    ${sink.code(1)}
    ${treeText(fold, "Result", 1, perRow, 1)}
    ${take}
    fn main(group: u32, lane: u32) {
      let rank = lane % ${perRow}u;
      let row = ${parts > 1 ? `group % sizes.rows` : rowsPerGroup === 1 ? "group" : `group * ${rowsPerGroup}u + lane / ${perRow}u`};
      let part = ${parts > 1 ? "group / sizes.rows" : "0u"};
      let first = row * sizes.size;
      let end = select(0u, (first + sizes.size + 3u) / 4u, row < sizes.rows);
      let begin = first / 4u + part * sizes.chunk;
      let stop = min(begin + sizes.chunk, end);
      ${inside}
      var s = start_State();
      var v = begin + rank;
      ${masked ? `if (4u * v < first && v < stop) { s = take(v, row); v += ${perRow}u; }` : ""}
      for (; v + ${(turn - 1) * perRow}u < calm; v += ${turn * perRow}u) { s = join_State(s, lift_turn(v, ${perRow}u, 4u * v - first, ${4 * perRow}u, row)); }
      for (; v < stop; v += ${perRow}u) { s = join_State(s, take(v, row)); }
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
    sizes: { rows, size, chunk },
  };
};
