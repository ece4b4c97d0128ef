import type { ReductionStep } from "@skein/tensor-core/backend";
import type { DeviceFacts, Pass } from "../../kernel.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { columnGeometry, columnsPass } from "./columns.ts";
import { type Fold, type Sink, type Source, type StateBlocks, stateSink, stateSource } from "./fold.ts";
import { rowGeometry, rowsPass, workgroupsWanted } from "./rows.ts";

const take = (fold: Fold, blocks: ScratchBlocks, states: number): StateBlocks =>
  fold.fields.map(() => blocks.take(states));

/**
 * Fold step by step from `source` to `sink`; what several workgroups share is joined by further passes. Work: one join
 * per element; memory: everything read once, and a state per part written and read.
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
  const todo = [...steps];
  let wanted = workgroupsWanted(facts);
  let from = source;
  while (todo.length > 0) {
    const step = todo.shift()!;
    const { outer, size, inner } = step;
    const rows = inner === 1 ? rowGeometry(outer, size, wanted) : undefined;
    const columns = columnGeometry(step, wanted);
    const { parts } = rows ?? columns;
    if (parts > 1) todo.unshift({ outer: 1, size: parts, inner: outer * inner });
    // The states of parts are few: a further pass would cost more than it saves.
    wanted = parts > 1 ? 1 : workgroupsWanted(facts);
    const states = todo.length > 0 ? take(fold, blocks, parts * outer * inner) : undefined;
    const to = states === undefined ? sink : stateSink(fold, states);
    passes.push(
      rows === undefined
        ? columnsPass(fold, from, to, step, columns)
        : rowsPass(fold, from, to, { rows: outer, size }, rows),
    );
    if (states !== undefined) from = stateSource(fold, states);
  }
  return passes;
};
