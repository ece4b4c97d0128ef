import type { DeviceFacts, KernelPlan, Pass } from "../../kernel.ts";
import { workgroupSize } from "../reduce/fold.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import { byRankPass, maxRankedSize } from "./by-rank.ts";
import { mergePass } from "./merge.ts";
import { radixSelectPasses } from "./radix-select.ts";
import { rowSelectPass } from "./row-select.ts";
import { elementsBinding, type Selection, type Winners, winText } from "./selection.ts";
import { sortTile, tileSortPass } from "./tile-sort.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Copies all elements of each row, with their positions, to the results. Used if k is the row length and the order is
 * by position.
 */
const copyPass = ({ rows, size }: Selection): Pass => {
  const win = winText(undefined);
  return {
    label: "top-k, everything",
    bindings: [elementsBinding(), ...win.bindings],
    workgroupSize,
    groups: Math.ceil((rows * size) / workgroupSize),
    code: wgsl`
      ${win.code}
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at < sizes.count) { win(at, x[at], 0u, at % sizes.size); }
      }
    `,
    sizes: { count: rows * size, size },
  };
};

const take = ({ rows, k }: Selection, blocks: ScratchBlocks): Winners => ({
  keys: blocks.take(rows * k),
  positions: blocks.take(rows * k),
});

/** Returns the passes that sort the k selected elements of each row, largest first, and write them to the results. */
const sortPasses = (selection: Selection, from: Winners | "elements", blocks: ScratchBlocks): Pass[] => {
  const { k } = selection;
  if (k <= sortTile) return [tileSortPass(selection, from, k, undefined)];
  let here = take(selection, blocks);
  let there = from === "elements" ? take(selection, blocks) : from;
  const passes = [tileSortPass(selection, from, k, here)];
  for (let run = sortTile; run < k; run *= 2) {
    passes.push(mergePass(selection, run, here, 2 * run < k ? there : undefined));
    [here, there] = [there, here];
  }
  return passes;
};

/** Whether one workgroup per row is faster than several workgroups per row. */
const usesOneWorkgroup = ({ rows, size }: Selection, facts: DeviceFacts): boolean =>
  size <= 4096 || rows >= (facts.software ? 8 : 256);

/**
 * Returns the plan that selects each row's k largest elements, in order of rank or of position. The comment of each
 * pass states its cost.
 */
export const topKPlan = (selection: Selection, sorted: boolean, facts: DeviceFacts): KernelPlan => {
  const { size, k } = selection;
  const blocks = new ScratchBlocks();
  const select = (to: Winners | undefined): Pass[] =>
    usesOneWorkgroup(selection, facts)
      ? [rowSelectPass(selection, to)]
      : radixSelectPasses(selection, to, blocks, facts);
  const passes = (): Pass[] => {
    if (size <= maxRankedSize) return [byRankPass(selection, sorted)];
    if (!sorted) return k === size ? [copyPass(selection)] : select(undefined);
    if (size <= sortTile) return [tileSortPass(selection, "elements", size, undefined)];
    if (k === size) return sortPasses(selection, "elements", blocks);
    const winners = take(selection, blocks);
    return [...select(winners), ...sortPasses(selection, winners, blocks)];
  };
  const list = passes();
  return { scratch: blocks.bytes, passes: list };
};
