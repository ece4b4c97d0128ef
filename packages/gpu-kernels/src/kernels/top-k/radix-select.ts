import type { DeviceFacts, Pass } from "../../kernel.ts";
import { rowScanPasses } from "../scan/rows.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { layoutOf } from "./radix-layout.ts";
import { binsPerRow, clearPass, countPass, pickPass, rounds } from "./radix-threshold.ts";
import { compactPass, tileCountPass } from "./radix-tiles.ts";
import type { Selection, Winners } from "./selection.ts";

/**
 * Returns the passes of a selection from long rows, with many workgroups per row. Three rounds of counting and picking
 * find the k-th largest key. The counts per tile become the positions of winners, and the winners are copied. Reads all
 * data five times, writes the winners once. Results do not depend on the schedule, because only counts are added with
 * atomics.
 */
export const radixSelectPasses = (
  selection: Selection,
  to: Winners | undefined,
  blocks: ScratchBlocks,
  facts: DeviceFacts,
): Pass[] => {
  const { rows } = selection;
  const layout = layoutOf(selection);
  const bins = blocks.take(rows * binsPerRow);
  const states = blocks.take(2 * rounds.length * rows);
  const counts = blocks.take(2 * rows * layout.stride);
  const counted = blocks.take(2 * rows * layout.stride);
  return [
    clearPass(bins, rows * binsPerRow),
    ...rounds.flatMap((_, round) => [
      countPass(selection, layout, round, bins, states, facts),
      pickPass(selection, round, bins, states),
    ]),
    tileCountPass(selection, layout, states, counts),
    ...rowScanPasses({ type: "u32", rows: 2 * rows, size: layout.stride, reverse: false }, counts, counted, blocks),
    compactPass(selection, layout, states, counted, to),
  ];
};
