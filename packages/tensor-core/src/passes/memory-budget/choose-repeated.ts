import { producersOf, type RepeatedStep, type StepShape, StepWalk } from "./step-walk.ts";

/**
 * Returns the candidates for recomputation, ascending: nodes whose results the backward pass reads, and their
 * ancestors.
 */
export const repeatCandidates = (step: StepShape): number[] => {
  const producers = producersOf(step);
  const found = new Set<number>();
  const stack = step.nodes.flatMap(({ isBackward, inputs }) => (isBackward ? inputs : []));
  for (let value = stack.pop(); value !== undefined; value = stack.pop()) {
    const id = producers[value]!;
    if (id < 0 || found.has(id) || !step.nodes[id]!.mayRepeat) continue;
    found.add(id);
    stack.push(...step.nodes[id]!.inputs);
  }
  return [...found].sort((a, b) => a - b);
};

export interface Choice extends RepeatedStep {
  /** Ids of the nodes to recompute, ascending. */
  readonly repeated: readonly number[];
}

/**
 * Whether choice `a` is better than `b`. Choices that meet the limit are compared by flops, then by peak bytes; choices
 * above the limit are compared by peak bytes.
 */
const isBetter = (a: RepeatedStep, b: RepeatedStep, maxBytes: number): boolean => {
  const [over, otherOver] = [a.peakBytes > maxBytes, b.peakBytes > maxBytes];
  if (over !== otherOver) return otherOver;
  return over ? a.peakBytes < b.peakBytes : a.flops < b.flops || (a.flops === b.flops && a.peakBytes < b.peakBytes);
};

/** Maximum number of candidates for which all subsets are evaluated. */
const exactUpTo = 12;
/** Maximum number of search passes over all nodes. The search ends earlier if a pass does not improve the choice. */
const maxPasses = 3;

/** Converts node ids to the mask that `StepWalk.run` expects. */
const maskOf = ({ nodes }: StepShape, ids: Iterable<number>): Uint8Array => {
  const mask = new Uint8Array(nodes.length);
  for (const id of ids) mask[id] = 1;
  return mask;
};

/**
 * Generates block schedules for different numbers of blocks: divides the candidates into blocks, and recomputes all
 * nodes whose results no later block reads (Chen et al. 2016, arXiv:1604.06174; O(√n) memory on a chain of n layers).
 * Blocks have equal numbers of nodes, or about equal bytes, with cuts at local minima of the live bytes.
 */
const blockSchedules = (step: StepShape, candidates: readonly number[]): number[][] => {
  const candidateIndex = new Map(candidates.map((id, at) => [id, at]));
  // Index of the last forward reader of each candidate, from which the live bytes at each possible cut are computed.
  const readUntil = candidates.map((_, at) => at);
  const producers = producersOf(step);
  step.nodes.forEach(({ inputs, isBackward }, id) => {
    const reader = candidateIndex.get(id);
    if (isBackward || reader === undefined) return;
    for (const value of inputs) {
      const before = candidateIndex.get(producers[value]!);
      if (before !== undefined) readUntil[before] = Math.max(readUntil[before]!, reader);
    }
  });
  readUntil[candidates.length - 1] = candidates.length; // read by the loss
  const bytesAt = candidates.map((id) => step.nodes[id]!.outputs.reduce((sum, value) => sum + step.bytes[value]!, 0));
  const liveBytes = new Float64Array(candidates.length + 1); // live bytes before each candidate
  bytesAt.forEach((bytes, at) => {
    liveBytes[at + 1]! += bytes;
    liveBytes[readUntil[at]! + 1]! -= bytes;
  });
  for (let at = 1; at < liveBytes.length; at++) liveBytes[at]! += liveBytes[at - 1]!;
  const before = new Float64Array(candidates.length + 1);
  bytesAt.forEach((bytes, at) => (before[at + 1] = before[at]! + bytes));

  const cutAt = (cuts: readonly number[]): number[] =>
    candidates.filter((_, at) => !cuts.some((cut) => at < cut && readUntil[at]! >= cut));
  const cheapestCut = (from: number, to: number): number => {
    let best = from;
    for (let at = from; at < to; at++) if (liveBytes[at]! < liveBytes[best]!) best = at;
    return best;
  };
  const schedules: number[][] = [[...candidates]];
  const numNodes = candidates.length;
  const root = Math.sqrt(numNodes);
  const counts = new Set([Math.floor(root), Math.ceil(numNodes / Math.ceil(root))]); // √n blocks, and √n nodes each
  for (let count = 2; count <= numNodes; count = Math.ceil(1.3 * count)) counts.add(count);
  for (const count of counts) {
    const length = Math.ceil(numNodes / count);
    schedules.push(cutAt(Array.from({ length: Math.floor(numNodes / length) }, (_, i) => (i + 1) * length)));
    const parts = Array.from({ length: count - 1 }, (_, i) => i + 1);
    const share = before.at(-1)! / count;
    const indexAtBytes = (bytes: number): number => {
      const at = before.findIndex((sum) => sum >= bytes);
      return at === -1 ? numNodes : at;
    };
    schedules.push(
      cutAt(parts.map((part) => cheapestCut(indexAtBytes((part - 0.5) * share), indexAtBytes((part + 0.5) * share)))),
    );
  }
  return schedules;
};

/**
 * Improves a block schedule by local search. If the limit is met, nodes are removed from the recomputed set, first the
 * nodes with the most flops per byte. If the limit is not met, applies changes that reduce the peak.
 */
const searchFrom = (
  step: StepShape,
  walk: StepWalk,
  candidates: readonly number[],
  start: readonly number[],
  maxBytes: number,
): Choice => {
  const mask = maskOf(step, start);
  let best = walk.run(mask);
  const worth = (id: number): number => {
    const { flops, outputs } = step.nodes[id]!;
    return (1 + flops) / (1 + outputs.reduce((sum, value) => sum + step.bytes[value]!, 0));
  };
  const order = candidates.toSorted((a, b) => worth(b) - worth(a) || a - b);
  for (let pass = 0; pass < maxPasses; pass++) {
    let changed = false;
    for (const id of order) {
      // Repeating more nodes never reduces flops, so if the limit is met, nodes are only removed from the set.
      if (mask[id] === 0 && best.peakBytes <= maxBytes) continue;
      mask[id] = 1 - mask[id]!;
      const now = walk.run(mask);
      if (isBetter(now, best, maxBytes)) [best, changed] = [now, true];
      else mask[id] = 1 - mask[id]!;
    }
    if (!changed) break;
  }
  return { ...walk.run(mask), repeated: walk.lastRepeated() };
};

/**
 * Chooses the forward nodes to recompute in the backward pass, so that at most `maxBytes` bytes are alive at one time.
 * Minimizes the recomputed flops; if no choice meets the limit, minimizes the peak bytes.
 *
 * Optimal for up to 12 candidates. For more candidates, uses local search from block schedules; the result needs no
 * more flops than any block schedule within the limit.
 *
 * Cost: O(2¹²) or O(candidates) runs of a `StepWalk`.
 * Source: problem of Jain et al. 2020, "Checkmate", arXiv:1910.02653, with each value computed at most twice.
 */
export const chooseRepeated = (step: StepShape, maxBytes: number): Choice => {
  const walk = new StepWalk(step);
  const candidates = repeatCandidates(step);
  const choiceOf = (ids: readonly number[]): Choice => ({
    ...walk.run(maskOf(step, ids)),
    repeated: walk.lastRepeated(),
  });
  let best = choiceOf([]);
  if (best.peakBytes <= maxBytes) return best;
  if (candidates.length <= exactUpTo) {
    for (let set = 1; set < 2 ** candidates.length; set++) {
      const choice = choiceOf(candidates.filter((_, i) => (set >> i) & 1));
      if (isBetter(choice, best, maxBytes)) best = choice;
    }
    return best;
  }
  const starts = blockSchedules(step, candidates).map(choiceOf);
  const lowest = starts.reduce((a, b) => (b.peakBytes < a.peakBytes ? b : a));
  const cheapest = starts.reduce((a, b) => (isBetter(b, a, maxBytes) ? b : a));
  for (const { repeated } of new Set([lowest, cheapest])) {
    const choice = searchFrom(step, walk, candidates, repeated, maxBytes);
    if (isBetter(choice, best, maxBytes)) best = choice;
  }
  return best;
};
