import { producersOf, type RepeatedStep, type StepShape, StepWalk } from "./step-walk.ts";

/** Candidates for recomputation, ascending: nodes whose results the backward pass reads, and their ancestors. */
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
  /** Nodes to repeat, ascending. */
  readonly repeated: readonly number[];
}

/**
 * Whether choice `a` is better than `b` for a limit: within the limit by flops, then by bytes; above the limit by
 * bytes.
 */
const isBetter = (a: RepeatedStep, b: RepeatedStep, maxBytes: number): boolean => {
  const [over, otherOver] = [a.peakBytes > maxBytes, b.peakBytes > maxBytes];
  if (over !== otherOver) return otherOver;
  return over ? a.peakBytes < b.peakBytes : a.flops < b.flops || (a.flops === b.flops && a.peakBytes < b.peakBytes);
};

/** Up to this number of candidates, all subsets are evaluated. */
const exactUpTo = 12;
/** Maximum number of passes of the search over all nodes, as long as each pass improves the choice. */
const maxPasses = 3;

/** Set of nodes to repeat, as an argument for `StepWalk`. */
const maskOf = ({ nodes }: StepShape, ids: Iterable<number>): Uint8Array => {
  const mask = new Uint8Array(nodes.length);
  for (const id of ids) mask[id] = 1;
  return mask;
};

/**
 * For each number of blocks, divide the candidates into blocks and repeat all nodes whose results are not read in a
 * later block: the schedules of Chen et al. 2016, arXiv:1604.06174, which take O(√n) memory on a chain of n layers.
 * Blocks have equally many nodes, or equally many bytes with each cut at the smallest number of live bytes.
 */
const blockSchedules = (step: StepShape, candidates: readonly number[]): number[][] => {
  const candidateIndex = new Map(candidates.map((id, at) => [id, at]));
  // Index of the last forward reader of each candidate, and the bytes that are live across each cut.
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
  const liveBytes = new Float64Array(candidates.length + 1); // before each index
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
  const counts = new Set([Math.floor(root), Math.ceil(numNodes / Math.ceil(root))]); // √n blocks, and blocks of √n
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
 * Start from a block schedule. While the limit is met, keep the nodes with most flops per byte; while it is not met,
 * apply changes that reduce the peak.
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
      // Repeating more never costs less: within the limit, nodes are only removed.
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
 * Choose the nodes of the forward pass to recompute in the backward pass, so that at most `maxBytes` are alive at one
 * time: with the fewest flops, or with the lowest peak if no choice meets the limit.
 *
 * Exact for up to 12 candidates. For more, starts from block schedules and removes nodes that need not be repeated,
 * those with most flops per byte first: no block schedule within the limit has fewer flops than the result.
 *
 * Cost: O(2¹²) or O(candidates) runs of a `StepWalk`.
 * Source: the problem is that of Jain et al. 2020, "Checkmate", arXiv:1910.02653, with each value computed at most
 * twice.
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
