import type { ReductionStep } from "@skein/tensor-core/backend";
import type { Pass } from "../../kernel.ts";
import { type Fold, foldText, type Lanes, type Sink, type Source, treeText, workgroupSize } from "./fold.ts";
import { unroll, unrolledText } from "./loop.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Tile of a matrix that one workgroup folds: `down` rows of `across` registers each. A register holds `lanes` adjacent
 * columns.
 */
export interface ColumnTile {
  readonly lanes: Lanes;
  readonly across: number;
  readonly down: number;
  /** Number of tiles per row. */
  readonly blocks: number;
}

/**
 * Maximum number of columns of a row that a workgroup holds in registers. At this maximum, a workgroup reads 1 KiB of
 * each row, in complete cache lines.
 */
const maxRegisters = 64;

export const columnTile = (inner: number): ColumnTile => {
  const lanes = inner % 4 === 0 ? 4 : 1;
  const registers = inner / lanes;
  const most = lanes === 4 ? maxRegisters : 2 * maxRegisters;
  const blocks = Math.ceil(registers / most);
  const across = Math.ceil(registers / blocks);
  return { lanes, across, down: Math.floor(workgroupSize / across), blocks };
};

export interface ColumnGeometry extends ColumnTile {
  /** Number of workgroups per column (`parts`), and number of rows per workgroup (`chunk`). */
  readonly parts: number;
  readonly chunk: number;
}

const maxChain = 64 * unroll;

/** Number of invocations that combine the partial states of one sum. */
const rankedStates = 16;

/**
 * Returns the distribution of columns over workgroups. Does not depend on `outer`, which is often the number of
 * samples, so the result of a sample is bitwise identical alone and in a batch.
 *
 * @param groupsWanted Maximum number of workgroups that share the columns of one [size, inner] matrix.
 */
export const columnGeometry = (
  { size, inner }: Pick<ReductionStep, "size" | "inner">,
  groupsWanted: number,
): ColumnGeometry => {
  const tile = columnTile(inner);
  const wanted = Math.ceil(groupsWanted / tile.blocks);
  const most = Math.max(1, Math.floor(size / (tile.down * unroll)));
  const least = Math.ceil(size / (tile.down * maxChain));
  const chunk = Math.max(1, Math.ceil(size / Math.max(1, least, Math.min(wanted, most))));
  return { ...tile, parts: Math.max(1, Math.ceil(size / chunk)), chunk };
};

/**
 * Returns the geometry of the pass that combines partial states, `parts` per sum, for `states` sums. The order of
 * combination depends only on the number of parts.
 */
export const partsGeometry = (parts: number, states: number): ColumnGeometry => {
  const lanes = states % 4 === 0 ? 4 : 1;
  const across = Math.min(workgroupSize / rankedStates, states / lanes);
  return { lanes, across, down: rankedStates, blocks: Math.ceil(states / lanes / across), parts: 1, chunk: parts };
};

/**
 * Folds the middle dimension of a dense [outer, size, inner] tensor. Invocations in the same row of a workgroup process
 * adjacent columns; invocations in the same column process interleaved rows, and their states are combined at the end.
 * The states of part p are written to `p · outer · inner …`. Reads all data once.
 */
export const columnsPass = (
  fold: Fold,
  source: Source,
  sink: Sink,
  { outer, size, inner }: ReductionStep,
  { lanes, across, down, blocks, parts, chunk }: ColumnGeometry,
): Pass => {
  const code = wgsl`
    ${foldText(fold, lanes, false)}
    ${source.code(lanes, false)}
    ${unrolledText(source, lanes)}
    ${sink.code(lanes)}
    ${treeText(fold, "State", lanes, down, across)}
    fn main(group: u32, lane: u32) {
      let rank = lane / ${across}u;
      let column = ${blocks === 1 ? "" : `group % ${blocks}u * ${across}u + `}lane % ${across}u;
      let part = ${parts === 1 ? "0u" : `(group / ${blocks}u) % sizes.parts`};
      let line = group / ${blocks}u${parts === 1 ? "" : " / sizes.parts"};
      let first = part * sizes.chunk;
      let stop = select(0u, min(first + sizes.chunk, sizes.size), rank < ${down}u && column < sizes.registers);
      let base = line * sizes.size * sizes.registers + column;
      let step = ${down}u * sizes.registers;
      var s = start_State();
      var row = first + rank;
      for (; row + ${(unroll - 1) * down}u < stop; row += ${unroll * down}u) { s = join_State(s, lift_turn(base + row * sizes.registers, step, row, ${down}u, column)); }
      for (; row < stop; row += ${down}u) { s = join_State(s, lift(base + row * sizes.registers, row, column)); }
      let result = tree(lane, rank, s);
      if (rank == 0u && column < sizes.registers) { store((part * ${outer}u + line) * sizes.registers + column, result); }
    }
  `;
  return {
    label: `${fold.label} columns, ${across} by ${down}${parts > 1 ? `, ${parts} parts` : ""}`,
    bindings: [...source.bindings(lanes, false), ...sink.bindings(lanes)],
    workgroupSize,
    groups: outer * parts * blocks,
    code,
    sizes: { size, registers: inner / lanes, chunk, parts },
  };
};
