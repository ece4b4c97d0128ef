import type { DeviceArray } from "./backend.ts";
import { ArrayStateError, InvariantError } from "../errors.ts";
import { type Graph, specOf } from "../graph/graph.ts";
import type { MemoryPlan } from "../memory/memory-plan.ts";
import type { ArrayLedger, OwnedArray } from "./array-ledger.ts";

/** Graph and memory plan of an executable, and indices of its donated inputs. */
export interface Signature {
  readonly graph: Graph;
  readonly plan: MemoryPlan;
  readonly donate: readonly number[];
}

/**
 * Loan of the argument arrays to one run of an executable. The loan ends in one of three ways: success (`settle`),
 * failure before any write (`giveBack`), or later failure (`lose`). Only this run may use donated arguments; several
 * runs may read other arguments.
 */
export class ArgumentLoan<Memory> {
  /** Memory block of each argument. */
  readonly memories: readonly Memory[];
  private readonly signature: Signature;
  private readonly ledger: ArrayLedger<Memory>;
  private readonly arrays: readonly OwnedArray<Memory>[];

  /**
   * Borrows all arguments. If one argument cannot be borrowed, no argument is borrowed.
   *
   * @throws ArrayStateError if an array belongs to another backend, is freed, donated or lost, or is donated to another
   * run, and if a donated array is passed twice or read by another run.
   */
  constructor(signature: Signature, ledger: ArrayLedger<Memory>, inputs: readonly DeviceArray[]) {
    const { graph, donate } = signature;
    if (inputs.length !== graph.inputs.length)
      throw new InvariantError(`the graph has ${graph.inputs.length} inputs, ${inputs.length} arrays were given`);
    const arrays = inputs.map((array) => ledger.own(array));
    if (donate.length > 0 && new Set(arrays).size < arrays.length) {
      const duplicate = donate.find(
        (position) => arrays.indexOf(arrays[position]!) !== arrays.lastIndexOf(arrays[position]!),
      );
      if (duplicate !== undefined)
        throw new ArrayStateError(
          `argument leaf ${duplicate} is given away (donated) but also passed at another position; pass a copy there`,
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
   * Ends the loan after success: consumes donated arrays, and creates arrays for the results.
   *
   * @param memoryOf Returns the memory of output `index`, for outputs that do not reuse the memory of an argument.
   */
  settle(memoryOf: (index: number) => Memory): OwnedArray<Memory>[] {
    const { graph, plan, donate } = this.signature;
    const reused = new Set<number>();
    const outputs = plan.outputs.map((place, index) => {
      const spec = specOf(graph, graph.outputs[index]!);
      if (place.region !== "input") return this.ledger.open(spec, memoryOf(index));
      reused.add(place.index);
      return this.ledger.takeOver(this.arrays[place.index]!, spec);
    });
    this.arrays.forEach((array, position) => {
      if (reused.has(position)) return;
      if (donate.includes(position)) this.ledger.consume(array);
      else this.ledger.giveBack(array);
    });
    return outputs;
  }

  /** Ends the loan after a failure before any write: all arrays are unchanged. */
  giveBack(): void {
    for (const array of this.arrays) this.ledger.giveBack(array);
  }

  /**
   * Ends the loan after a failure during or after the first write: donated arrays are lost.
   *
   * @param inUse Indices of arguments that a collective may still read or write. Their memory is never released.
   * Default: none.
   */
  lose(inUse: ReadonlySet<number> = new Set()): void {
    this.arrays.forEach((array, position) => {
      if (inUse.has(position)) this.ledger.abandon(array);
      else if (this.signature.donate.includes(position)) this.ledger.lose(array);
      else this.ledger.giveBack(array);
    });
  }
}
