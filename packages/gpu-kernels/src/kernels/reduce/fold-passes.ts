import type { ReductionStep } from "@skein/tensor-core/backend";
import type { DeviceFacts, Pass } from "../../kernel.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { columnGeometry, columnsPass, partsGeometry } from "./columns.ts";
import { type Fold, type Sink, type Source, type StateBlocks, stateSink, stateSource } from "./fold.ts";
import { rowGeometry, rowsPass, workgroupsWanted } from "./rows.ts";

const take = (fold: Fold, blocks: ScratchBlocks, states: number): StateBlocks =>
  fold.fields.map(() => blocks.take(states));

/**
 * Returns the passes that fold step by step from `source` to `sink`. If several workgroups share a result, additional
 * passes combine their states. Work: one combination per element. Memory: all data is read once, and one state per part
 * is written and read.
 */
export const foldPasses = (
  fold: Fold,
  source: Source,
  sink: Sink,
  steps: readonly ReductionStep[],
  blocks: ScratchBlocks,
  facts: DeviceFacts,
): Pass[] => {
  const passes: Pass[] = [];
  let from = source;
  const wanted = workgroupsWanted(facts);
  steps.forEach((step, i) => {
    const { outer, size, inner } = step;
    const isLast = i === steps.length - 1;
    const rows = inner === 1 ? rowGeometry(size, wanted) : undefined;
    const columns = columnGeometry(step, wanted);
    const { parts } = rows ?? columns;
    const results = outer * inner;
    const push = (split: boolean, pass: (to: Sink) => Pass): void => {
      const states = split || !isLast ? take(fold, blocks, (split ? parts : 1) * results) : undefined;
      passes.push(pass(states === undefined ? sink : stateSink(fold, states)));
      if (states !== undefined) from = stateSource(fold, states);
    };
    push(parts > 1, (to) =>
      rows === undefined
        ? columnsPass(fold, from, to, step, columns)
        : rowsPass(fold, from, to, { rows: outer, size }, rows),
    );
    if (parts > 1) {
      const joined = { outer: 1, size: parts, inner: results };
      push(false, (to) => columnsPass(fold, from, to, joined, partsGeometry(parts, results)));
    }
  });
  return passes;
};
