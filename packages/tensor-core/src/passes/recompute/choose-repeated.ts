/**
 * One computation of a step, as the choice of what to repeat sees it. Values are numbered from 0; views are the values
 * that they show.
 */
export interface StepNode {
  readonly flops: number;
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /** It reads copies of what is repeated; others read the first. */
  readonly isBackward: boolean;
  readonly mayRepeat: boolean;
}

/** A step in its order, and what of it takes memory. */
export interface StepShape {
  readonly nodes: readonly StepNode[];
  /** Per value; 0 for what lies elsewhere, as arguments do. */
  readonly bytes: readonly number[];
  /** Values that live to the end. */
  readonly returned: readonly number[];
}

/** What repeating some nodes comes to. */
export interface RepeatedStep {
  /** Most bytes alive at one time, and after which node of the step that is. */
  readonly peakBytes: number;
  readonly peakAt: number;
  /** Flops of all that runs a second time. */
  readonly flops: number;
  /** Most bytes alive while each node, and what is repeated before it, runs. */
  readonly alive: readonly number[];
}

/** Per value, the node that computes it; -1 for arguments. */
const producersOf = ({ nodes, bytes }: StepShape): number[] => {
  const producers = new Array<number>(bytes.length).fill(-1);
  nodes.forEach(({ outputs }, id) => outputs.forEach((value) => (producers[value] = id)));
  return producers;
};

/**
 * Run a step in thought, with some nodes repeated: each just before the first backward node that reads a result of it,
 * or of what follows from it. What is repeated is kept until its last reader.
 *
 * Cost: O(nodes + edges).
 */
export const repeatedStep = (step: StepShape, repeated: ReadonlySet<number>): RepeatedStep => {
  const producers = producersOf(step);
  const copies = new Map<number, number>();
  const bytes = [...step.bytes];
  const runs: { readonly at: number; readonly inputs: readonly number[]; readonly outputs: readonly number[] }[] = [];
  let flops = 0;
  const isRepeated = (value: number): boolean => producers[value]! >= 0 && repeated.has(producers[value]!);
  const repeat = (value: number, at: number): number => {
    const known = copies.get(value);
    if (known !== undefined) return known;
    const node = step.nodes[producers[value]!]!;
    const inputs = node.inputs.map((input) => (isRepeated(input) ? repeat(input, at) : input));
    const outputs = node.outputs.map((output) => {
      const copy = bytes.push(step.bytes[output]!) - 1;
      copies.set(output, copy);
      return copy;
    });
    flops += node.flops;
    runs.push({ at, inputs, outputs });
    return copies.get(value)!;
  };
  step.nodes.forEach((node, at) => {
    const inputs = node.inputs.map((value) => (node.isBackward && isRepeated(value) ? repeat(value, at) : value));
    runs.push({ at, inputs, outputs: node.outputs });
  });

  const last = new Array<number>(bytes.length).fill(-1);
  runs.forEach(({ inputs, outputs }, run) => [...inputs, ...outputs].forEach((value) => (last[value] = run)));
  for (const value of step.returned) last[value] = runs.length;
  const freed = new Float64Array(runs.length + 1);
  bytes.forEach((size, value) => {
    if (last[value]! >= 0 && producers[value] !== -1) freed[last[value]!]! += size;
  });
  const alive = step.nodes.map(() => 0);
  let now = 0;
  runs.forEach(({ at, outputs }, run) => {
    for (const value of outputs) now += bytes[value]!;
    alive[at] = Math.max(alive[at]!, now);
    now -= freed[run]!;
  });
  const peakBytes = Math.max(0, ...alive);
  return { peakBytes, peakAt: alive.indexOf(peakBytes), flops, alive };
};

/** Nodes that it may be worth to repeat: what backward reads, and what that follows from. */
export const worthRepeating = (step: StepShape): number[] => {
  const producers = producersOf(step);
  const found = new Set<number>();
  const visit = (value: number): void => {
    const id = producers[value]!;
    if (id < 0 || found.has(id) || !step.nodes[id]!.mayRepeat) return;
    found.add(id);
    step.nodes[id]!.inputs.forEach(visit);
  };
  for (const { isBackward, inputs } of step.nodes) if (isBackward) inputs.forEach(visit);
  return [...found].sort((a, b) => a - b);
};

export interface Choice extends RepeatedStep {
  /** Nodes to repeat, ascending. */
  readonly repeated: readonly number[];
}

const choiceOf = (step: StepShape, repeated: ReadonlySet<number>): Choice => ({
  repeated: [...repeated].sort((a, b) => a - b),
  ...repeatedStep(step, repeated),
});

/** Whether a choice is better under a bound: within it by flops, then by bytes; beyond it by bytes. */
const isBetter = (a: Choice, b: Choice, maxBytes: number): boolean => {
  const [over, otherOver] = [a.peakBytes > maxBytes, b.peakBytes > maxBytes];
  if (over !== otherOver) return otherOver;
  return over ? a.peakBytes < b.peakBytes : a.flops < b.flops || (a.flops === b.flops && a.peakBytes < b.peakBytes);
};

/** Up to so many nodes, all sets of them are looked at. */
const exactUpTo = 12;
/** How far back what leads to a node is repeated with it, in nodes. */
const reaches = [1, 2, 4, 8, 16, 64];
/**
 * Nodes that are tried in one round, those that free most bytes per flop: fewer of a long step, whose runs take longer.
 */
const triedAtOnce = ({ nodes }: StepShape): number => Math.max(4, Math.min(24, Math.ceil(8000 / nodes.length)));

/** A node with what it follows from, so many nodes back. */
const withAncestors = (step: StepShape, producers: readonly number[], id: number, reach: number): number[] => {
  const found = new Set([id]);
  for (const at of found) {
    if (found.size >= reach) break;
    for (const value of step.nodes[at]!.inputs) {
      const before = producers[value]!;
      if (before >= 0 && step.nodes[before]!.mayRepeat && found.size < reach) found.add(before);
    }
  }
  return [...found];
};

/**
 * Add what frees most bytes at the peak per flop, until the bound is met or nothing helps; then leave out again what is
 * not needed.
 */
const chooseGreedily = (step: StepShape, candidates: readonly number[], maxBytes: number): Choice => {
  const producers = producersOf(step);
  let best = choiceOf(step, new Set());
  while (best.peakBytes > maxBytes) {
    const chosen = new Set(best.repeated);
    const { peakAt, flops, alive } = best;
    const saved = candidates
      .filter((id) => !chosen.has(id) && id < peakAt)
      .map((id) => ({ id, bytes: step.nodes[id]!.outputs.reduce((sum, value) => sum + step.bytes[value]!, 0) }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => b.bytes / (1 + step.nodes[b.id]!.flops) - a.bytes / (1 + step.nodes[a.id]!.flops))
      .slice(0, triedAtOnce(step));
    let next: { readonly choice: Choice; readonly score: number } | undefined;
    for (const { id } of saved) {
      for (const reach of reaches) {
        const choice = choiceOf(step, new Set([...chosen, ...withAncestors(step, producers, id, reach)]));
        const freed = alive[peakAt]! - choice.alive[peakAt]!;
        const score = freed / (1 + choice.flops - flops);
        if (freed > 0 && choice.peakBytes <= best.peakBytes && (next === undefined || score > next.score))
          next = { choice, score };
      }
    }
    if (next === undefined) break;
    best = next.choice;
  }
  if (best.peakBytes > maxBytes) {
    const all = choiceOf(step, new Set(candidates));
    if (isBetter(all, best, maxBytes)) best = all;
  }
  for (const id of best.repeated.toSorted((a, b) => step.nodes[b]!.flops - step.nodes[a]!.flops)) {
    const without = choiceOf(step, new Set(best.repeated.filter((other) => other !== id)));
    if (isBetter(without, best, maxBytes)) best = without;
  }
  return best;
};

/**
 * Choose what of a step's forward pass to compute again in backward, so that no more than `maxBytes` are alive at one
 * time: least flops, or the least peak where none meets the bound.
 *
 * Exact up to 12 nodes that may be repeated. Above, greedy: what frees most bytes at the peak per flop, alone or with
 * what it follows from.
 *
 * Cost: O(2¹²) or O(nodes repeated · 144) runs of `repeatedStep`.
 * Source: the problem is that of Jain et al. 2020, "Checkmate", arXiv:1910.02653, with each value computed twice at
 * most.
 */
export const chooseRepeated = (step: StepShape, maxBytes: number): Choice => {
  const candidates = worthRepeating(step);
  if (candidates.length > exactUpTo) return chooseGreedily(step, candidates, maxBytes);
  let best = choiceOf(step, new Set());
  for (let set = 1; set < 2 ** candidates.length; set++) {
    const choice = choiceOf(step, new Set(candidates.filter((_, i) => (set >> i) & 1)));
    if (isBetter(choice, best, maxBytes)) best = choice;
  }
  return best;
};
