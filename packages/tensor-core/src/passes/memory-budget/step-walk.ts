/**
 * Node of a step, as input for choosing the nodes to recompute. Values are numbered from 0. A view has the number of
 * the value that it views.
 */
export interface StepNode {
  readonly flops: number;
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /**
   * Whether the node belongs to the backward pass. Backward nodes read the copies of recomputed values; other nodes
   * read the originals.
   */
  readonly isBackward: boolean;
  readonly mayRepeat: boolean;
}

/** Nodes of a step in execution order, and the memory of the step's values. */
export interface StepShape {
  readonly nodes: readonly StepNode[];
  /** Size of each value in bytes; 0 for values outside the workspace, such as arguments. */
  readonly bytes: readonly number[];
  /** Numbers of the values that stay alive until the end of the step. */
  readonly returned: readonly number[];
}

/** Memory and compute cost of a step in which some nodes are recomputed. */
export interface RepeatedStep {
  /** Maximum number of bytes alive at one time. */
  readonly peakBytes: number;
  /** Total flops of the recomputed nodes. */
  readonly flops: number;
}

/** For each value, returns the index of the node that computes it; -1 for arguments. */
export const producersOf = ({ nodes, bytes }: StepShape): Int32Array => {
  const producers = new Int32Array(bytes.length).fill(-1);
  nodes.forEach(({ outputs }, id) => outputs.forEach((value) => (producers[value] = id)));
  return producers;
};

/** Concatenates lists. Returns the elements `all`, and the start index `begin` of each list. */
const flatten = (lists: readonly (readonly number[])[]): { readonly begin: Int32Array; readonly all: Int32Array } => {
  const begin = new Int32Array(lists.length + 1);
  lists.forEach((list, i) => (begin[i + 1] = begin[i]! + list.length));
  return { begin, all: Int32Array.from(lists.flat()) };
};

/**
 * Simulator of a step's memory use, for different sets of recomputed nodes. A recomputed node runs again directly
 * before the first backward node that depends on its result. The copies of the results are kept until they are last
 * read.
 */
export class StepWalk {
  private readonly step: StepShape;
  private readonly producers: Int32Array;
  private readonly inputs: ReturnType<typeof flatten>;
  private readonly outputs: ReturnType<typeof flatten>;
  /** Indices of the executed nodes, in execution order. The recomputation of node i is stored as ~i. */
  private readonly runs: Int32Array;
  /**
   * Index in `runs` of the last execution that reads or writes each value, followed by the indices for the copy of each
   * value; -1 if a value or copy is never read or written.
   */
  private readonly last: Int32Array;
  private readonly freed: Float64Array;
  private readonly isComputed: Uint8Array;

  constructor(step: StepShape) {
    this.step = step;
    this.producers = producersOf(step);
    this.inputs = flatten(step.nodes.map(({ inputs }) => inputs));
    this.outputs = flatten(step.nodes.map(({ outputs }) => outputs));
    this.runs = new Int32Array(2 * step.nodes.length);
    this.last = new Int32Array(2 * step.bytes.length);
    this.freed = new Float64Array(2 * step.nodes.length + 1);
    this.isComputed = new Uint8Array(step.nodes.length);
  }

  /** Fills `runs` with the execution order. Returns the number of executions, and the flops of the recomputed nodes. */
  private order(isRepeated: Uint8Array): { readonly numRuns: number; readonly flops: number } {
    const { producers, inputs, runs, isComputed } = this;
    const { nodes } = this.step;
    isComputed.fill(0);
    let [numRuns, flops] = [0, 0];
    let needed: number[] = [];
    const need = (id: number): void => {
      for (let i = inputs.begin[id]!; i < inputs.begin[id + 1]!; i++) {
        const before = producers[inputs.all[i]!]!;
        if (before < 0 || isRepeated[before] === 0 || isComputed[before] === 1) continue;
        isComputed[before] = 1;
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

  /**
   * Returns the nodes that were recomputed in the last `run`, ascending: only nodes on which a backward node depends.
   */
  lastRepeated(): number[] {
    return [...this.isComputed.entries()].flatMap(([id, isComputed]) => (isComputed === 1 ? [id] : []));
  }

  /**
   * Simulates the step. @param isRepeated For each node, 1 if the node is recomputed, otherwise 0. Cost: O(nodes +
   * edges).
   */
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
