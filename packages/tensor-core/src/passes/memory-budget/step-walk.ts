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
  /** Most bytes alive at one time. */
  readonly peakBytes: number;
  /** Flops of all that runs a second time. */
  readonly flops: number;
}

/** Per value, the node that computes it; -1 for arguments. */
export const producersOf = ({ nodes, bytes }: StepShape): Int32Array => {
  const producers = new Int32Array(bytes.length).fill(-1);
  nodes.forEach(({ outputs }, id) => outputs.forEach((value) => (producers[value] = id)));
  return producers;
};

/** Lists end to end, and where each begins. */
const flatten = (lists: readonly (readonly number[])[]): { readonly begin: Int32Array; readonly all: Int32Array } => {
  const begin = new Int32Array(lists.length + 1);
  lists.forEach((list, i) => (begin[i + 1] = begin[i]! + list.length));
  return { begin, all: Int32Array.from(lists.flat()) };
};

/**
 * A step that is run in thought many times, each time with other nodes repeated: those that backward reads, just before
 * the first backward node that reads a result of them, or of what follows from it. What is repeated is kept until its
 * last reader.
 */
export class StepWalk {
  private readonly step: StepShape;
  private readonly producers: Int32Array;
  private readonly inputs: ReturnType<typeof flatten>;
  private readonly outputs: ReturnType<typeof flatten>;
  /** Nodes in the order of a run; copies as their complements. */
  private readonly runs: Int32Array;
  /** Per value, and then per copy of it, the last run that reads or writes it; -1 for none. */
  private readonly last: Int32Array;
  private readonly freed: Float64Array;
  private readonly isThere: Uint8Array;

  constructor(step: StepShape) {
    this.step = step;
    this.producers = producersOf(step);
    this.inputs = flatten(step.nodes.map(({ inputs }) => inputs));
    this.outputs = flatten(step.nodes.map(({ outputs }) => outputs));
    this.runs = new Int32Array(2 * step.nodes.length);
    this.last = new Int32Array(2 * step.bytes.length);
    this.freed = new Float64Array(2 * step.nodes.length + 1);
    this.isThere = new Uint8Array(step.nodes.length);
  }

  /** Fill `runs`. */
  private order(isRepeated: Uint8Array): { readonly numRuns: number; readonly flops: number } {
    const { producers, inputs, runs, isThere } = this;
    const { nodes } = this.step;
    isThere.fill(0);
    let [numRuns, flops] = [0, 0];
    let needed: number[] = [];
    const need = (id: number): void => {
      for (let i = inputs.begin[id]!; i < inputs.begin[id + 1]!; i++) {
        const before = producers[inputs.all[i]!]!;
        if (before < 0 || isRepeated[before] === 0 || isThere[before] === 1) continue;
        isThere[before] = 1;
        needed.push(before);
      }
    };
    for (const [id, { isBackward }] of nodes.entries()) {
      if (isBackward) {
        need(id);
        for (let i = 0; i < needed.length; i++) need(needed[i]!);
        if (needed.length > 0) {
          for (const copy of needed.sort((a, b) => a - b)) {
            runs[numRuns++] = ~copy;
            flops += nodes[copy]!.flops;
          }
          needed = [];
        }
      }
      runs[numRuns++] = id;
    }
    return { numRuns, flops };
  }

  /** Of the nodes that were repeated last, those that a backward node has asked for; ascending. */
  lastRepeated(): number[] {
    return [...this.isThere.entries()].flatMap(([id, isThere]) => (isThere === 1 ? [id] : []));
  }

  /** @param isRepeated per node, 1 for those that are repeated. Cost: O(nodes + edges). */
  run(isRepeated: Uint8Array): RepeatedStep {
    const { producers, inputs, outputs, runs, last, freed } = this;
    const { nodes, bytes, returned } = this.step;
    const { numRuns, flops } = this.order(isRepeated);
    const numValues = bytes.length;
    last.fill(-1);
    for (let at = 0; at < numRuns; at++) {
      const isCopy = runs[at]! < 0;
      const id = isCopy ? ~runs[at]! : runs[at]!;
      const readsCopies = isCopy || nodes[id]!.isBackward;
      for (let i = inputs.begin[id]!; i < inputs.begin[id + 1]!; i++) {
        const value = inputs.all[i]!;
        const before = producers[value]!;
        last[readsCopies && before >= 0 && isRepeated[before] === 1 ? numValues + value : value] = at;
      }
      for (let i = outputs.begin[id]!; i < outputs.begin[id + 1]!; i++)
        last[isCopy ? numValues + outputs.all[i]! : outputs.all[i]!] = at;
    }
    for (const value of returned) last[value] = numRuns;
    freed.fill(0);
    for (let slot = 0; slot < last.length; slot++) {
      const value = slot < numValues ? slot : slot - numValues;
      if (last[slot]! >= 0 && producers[value] !== -1) freed[last[slot]!]! += bytes[value]!;
    }
    let [now, peakBytes] = [0, 0];
    for (let at = 0; at < numRuns; at++) {
      const id = runs[at]! < 0 ? ~runs[at]! : runs[at]!;
      for (let i = outputs.begin[id]!; i < outputs.begin[id + 1]!; i++) now += bytes[outputs.all[i]!]!;
      peakBytes = Math.max(peakBytes, now);
      now -= freed[at]!;
    }
    return { peakBytes, flops };
  }
}
