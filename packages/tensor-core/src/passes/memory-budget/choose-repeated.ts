import { producersOf, type RepeatedStep, type StepShape, StepWalk } from "./step-walk.ts";

/** Nodes that it may be worth to repeat, ascending: what backward reads, and what that follows from. */
export const worthRepeating = (step: StepShape): number[] => {
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

/** Whether a choice is better under a bound: within it by flops, then by bytes; beyond it by bytes. */
const isBetter = (a: RepeatedStep, b: RepeatedStep, maxBytes: number): boolean => {
  const [over, otherOver] = [a.peakBytes > maxBytes, b.peakBytes > maxBytes];
  if (over !== otherOver) return otherOver;
  return over ? a.peakBytes < b.peakBytes : a.flops < b.flops || (a.flops === b.flops && a.peakBytes < b.peakBytes);
};

/** Up to so many nodes, all sets of them are looked at. */
const exactUpTo = 12;
/** How often the search goes through all nodes again while that helps. */
const maxPasses = 3;

/** A set of nodes to repeat, as `StepWalk` takes it. */
const maskOf = ({ nodes }: StepShape, ids: Iterable<number>): Uint8Array => {
  const mask = new Uint8Array(nodes.length);
  for (const id of ids) mask[id] = 1;
  return mask;
};

/**
 * For each number of blocks, cut the candidates into so many and repeat what does not reach from one into the next: the
 * schedules of Chen et al. 2016, arXiv:1604.06174, which take O(√n) of memory on a chain of n layers. Blocks are of
 * equally many nodes, and of equally many bytes with each cut where least reaches across.
 */
const inBlocks = (step: StepShape, candidates: readonly number[]): number[][] => {
  const place = new Map(candidates.map((id, at) => [id, at]));
  // How far each candidate's results are read in the forward pass, and what of it reaches across each cut.
  const readUntil = candidates.map((_, at) => at);
  const producers = producersOf(step);
  step.nodes.forEach(({ inputs, isBackward }, id) => {
    const reader = place.get(id);
    if (isBackward || reader === undefined) return;
    for (const value of inputs) {
      const before = place.get(producers[value]!);
      if (before !== undefined) readUntil[before] = Math.max(readUntil[before]!, reader);
    }
  });
  readUntil[candidates.length - 1] = candidates.length; // by what makes the loss of it
  const bytesAt = candidates.map((id) => step.nodes[id]!.outputs.reduce((sum, value) => sum + step.bytes[value]!, 0));
  const across = new Float64Array(candidates.length + 1); // before each place
  bytesAt.forEach((bytes, at) => {
    across[at + 1]! += bytes;
    across[readUntil[at]! + 1]! -= bytes;
  });
  for (let at = 1; at < across.length; at++) across[at]! += across[at - 1]!;
  const before = new Float64Array(candidates.length + 1);
  bytesAt.forEach((bytes, at) => (before[at + 1] = before[at]! + bytes));

  const cutAt = (cuts: readonly number[]): number[] =>
    candidates.filter((_, at) => !cuts.some((cut) => at < cut && readUntil[at]! >= cut));
  const leastAcross = (from: number, to: number): number => {
    let best = from;
    for (let at = from; at < to; at++) if (across[at]! < across[best]!) best = at;
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
    const placeOfBytes = (bytes: number): number => {
      const at = before.findIndex((sum) => sum >= bytes);
      return at === -1 ? numNodes : at;
    };
    schedules.push(
      cutAt(parts.map((part) => leastAcross(placeOfBytes((part - 0.5) * share), placeOfBytes((part + 0.5) * share)))),
    );
  }
  return schedules;
};

/**
 * Begin with schedules in blocks, then keep what costs most flops per byte as long as the bound is met, or change what
 * lowers the peak as long as it is not.
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
      // To repeat more never costs less: within the bound, nodes are only taken out.
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
 * Choose what of a step's forward pass to compute again in backward, so that no more than `maxBytes` are alive at one
 * time: least flops, or the least peak where none meets the bound.
 *
 * Exact up to 12 nodes that may be repeated. Above it begins with schedules in blocks, and takes out what need not be
 * repeated, that with most flops per byte first: no such schedule within the bound has fewer flops than the result.
 *
 * Cost: O(2¹²) or O(nodes that may be repeated) runs of a `StepWalk`.
 * Source: the problem is that of Jain et al. 2020, "Checkmate", arXiv:1910.02653, with each value computed twice at
 * most.
 */
export const chooseRepeated = (step: StepShape, maxBytes: number): Choice => {
  const walk = new StepWalk(step);
  const candidates = worthRepeating(step);
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
  const starts = inBlocks(step, candidates).map(choiceOf);
  const lowest = starts.reduce((a, b) => (b.peakBytes < a.peakBytes ? b : a));
  const cheapest = starts.reduce((a, b) => (isBetter(b, a, maxBytes) ? b : a));
  for (const { repeated } of new Set([lowest, cheapest])) {
    const choice = searchFrom(step, walk, candidates, repeated, maxBytes);
    if (isBetter(choice, best, maxBytes)) best = choice;
  }
  return best;
};
