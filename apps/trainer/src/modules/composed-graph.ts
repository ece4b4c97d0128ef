import { ModuleError } from "@skein/cli/node";
import type { Graph, Traced } from "@skein/tensor-core";
import { expandCompositions, isUserOperator } from "@skein/tensor-core/backend";

/**
 * Replaces user-defined operators in a graph by their compositions, because operator definitions contain functions,
 * which cannot be sent to threads.
 *
 * @param what name of the function in errors.
 * @throws ModuleError if an operator has no composition.
 */
export const composed = ({ graph, ...trees }: Traced, what = "train(): model"): Traced => {
  const expanded: Graph = expandCompositions(graph, ({ name }) => !isUserOperator(name));
  const own = expanded.nodes.find(({ op }) => isUserOperator(op));
  if (own !== undefined)
    throw new ModuleError(
      `${what}: its operator ${own.op} has kernels and no composition, and kernels are functions that cannot be sent to the threads of ranks; add a composition, or put the operator into a module and name it: { kind: "module", file }`,
    );
  return { ...trees, graph: expanded };
};
