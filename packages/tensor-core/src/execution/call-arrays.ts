import type { DeviceArray } from "../backend.ts";
import { ArrayStateError, InvariantError } from "../errors.ts";
import { type Graph, specOf } from "../graph/graph.ts";
import type { MemoryPlan } from "../passes/memory-plan.ts";
import type { ArrayLedger, OwnedArray } from "./array-ledger.ts";

/** The arguments of a call as arrays of this backend. @throws ArrayStateError for another's, and for one that is given away twice. */
export const claimArguments = <Memory>(
  graph: Graph,
  donate: readonly number[],
  ledger: ArrayLedger<Memory>,
  inputs: readonly DeviceArray[],
): OwnedArray<Memory>[] => {
  if (inputs.length !== graph.inputs.length)
    throw new InvariantError(`the graph has ${graph.inputs.length} inputs, ${inputs.length} arrays were given`);
  const arrays = inputs.map((array) => ledger.own(array));
  if (donate.length > 0 && new Set(arrays).size < arrays.length) {
    const twice = donate.find((position) => arrays.indexOf(arrays[position]!) !== arrays.lastIndexOf(arrays[position]!));
    if (twice !== undefined)
      throw new ArrayStateError(`argument leaf ${twice} is given away (donated) but is also passed at another position; pass a copy there`);
  }
  return arrays;
};

/** End the donated arguments of a call that succeeded, and make arrays of its results. @param memoryOf fresh memory of output `index`. */
export const settleResults = <Memory>(
  graph: Graph,
  plan: MemoryPlan,
  donate: readonly number[],
  ledger: ArrayLedger<Memory>,
  { inputs, memoryOf }: { readonly inputs: readonly OwnedArray<Memory>[]; readonly memoryOf: (index: number) => Memory },
): OwnedArray<Memory>[] => {
  const takenOver = new Set<number>();
  const outputs = plan.outputs.map((place, index) => {
    const spec = specOf(graph, graph.outputs[index]!);
    if (place.region !== "input") return ledger.open(spec, memoryOf(index));
    takenOver.add(place.index);
    return ledger.takeOver(inputs[place.index]!, spec);
  });
  for (const position of donate) if (!takenOver.has(position)) ledger.consume(inputs[position]!);
  return outputs;
};
