import type { DeviceArray } from "./backend.ts";
import { ArrayStateError, InvariantError } from "../errors.ts";
import { type Graph, specOf } from "../graph/graph.ts";
import type { MemoryPlan } from "../memory/memory-plan.ts";
import type { ArrayLedger, OwnedArray } from "./array-ledger.ts";

/** A compiled graph, as far as its arguments and results go. */
export interface Signature {
  readonly graph: Graph;
  readonly plan: MemoryPlan;
  readonly donate: readonly number[];
}

/**
 * The arguments of one run, lent by their owner until the run has ended in one of three ways: it went well (`settle`),
 * it failed before it wrote anything (`giveBack`), or it failed later (`lose`). Donated arguments are the run's own
 * meanwhile; others may be read by several runs.
 */
export class ArgumentLoan<Memory> {
  /** Where each argument lies. */
  readonly memories: readonly Memory[];
  private readonly signature: Signature;
  private readonly ledger: ArrayLedger<Memory>;
  private readonly arrays: readonly OwnedArray<Memory>[];

  /**
   * Borrow all arguments, or none.
   *
   * @throws ArrayStateError for an array of another backend, one that has ended, one that another run was given, and
   * one that is given away while it is passed or read elsewhere.
   */
  constructor(signature: Signature, ledger: ArrayLedger<Memory>, inputs: readonly DeviceArray[]) {
    const { graph, donate } = signature;
    if (inputs.length !== graph.inputs.length)
      throw new InvariantError(`the graph has ${graph.inputs.length} inputs, ${inputs.length} arrays were given`);
    const arrays = inputs.map((array) => ledger.own(array));
    if (donate.length > 0 && new Set(arrays).size < arrays.length) {
      const twice = donate.find(
        (position) => arrays.indexOf(arrays[position]!) !== arrays.lastIndexOf(arrays[position]!),
      );
      if (twice !== undefined)
        throw new ArrayStateError(
          `argument leaf ${twice} is given away (donated) but is also passed at another position; pass a copy there`,
        );
    }
    const memories: Memory[] = [];
    try {
      for (const [position, array] of arrays.entries()) memories.push(array.lend(donate.includes(position)));
    } catch (error) {
      for (const array of arrays.slice(0, memories.length)) ledger.giveBack(array);
      throw error;
    }
    this.signature = signature;
    this.ledger = ledger;
    this.arrays = arrays;
    this.memories = memories;
  }

  /**
   * The run went well: end what was donated, and make arrays of the results.
   *
   * @param memoryOf memory of output `index` that is no argument's.
   */
  settle(memoryOf: (index: number) => Memory): OwnedArray<Memory>[] {
    const { graph, plan, donate } = this.signature;
    const takenOver = new Set<number>();
    const outputs = plan.outputs.map((place, index) => {
      const spec = specOf(graph, graph.outputs[index]!);
      if (place.region !== "input") return this.ledger.open(spec, memoryOf(index));
      takenOver.add(place.index);
      return this.ledger.takeOver(this.arrays[place.index]!, spec);
    });
    this.arrays.forEach((array, position) => {
      if (takenOver.has(position)) return;
      if (donate.includes(position)) this.ledger.consume(array);
      else this.ledger.giveBack(array);
    });
    return outputs;
  }

  /** The run failed before it wrote anything: all arrays are as they were. */
  giveBack(): void {
    for (const array of this.arrays) this.ledger.giveBack(array);
  }

  /**
   * The run failed: what was donated is lost.
   *
   * @param inUse positions of arguments that a collective may go on reading or writing.
   */
  lose(inUse: ReadonlySet<number> = new Set()): void {
    this.arrays.forEach((array, position) => {
      if (inUse.has(position)) this.ledger.abandon(array);
      else if (this.signature.donate.includes(position)) this.ledger.lose(array);
      else this.ledger.giveBack(array);
    });
  }
}
