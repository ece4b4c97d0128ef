import type { Graph, Traced } from "@skein/tensor-core";
import { expandCompositions, isUsersOperator } from "@skein/tensor-core/backend";
import { ModuleError } from "../errors.ts";

/**
 * The graph with the user's operators as what they are composed of: their definitions are functions, too.
 *
 * @param what names its function in errors.
 * @throws ModuleError for an operator that is composed of nothing.
 */
export const composed = ({ graph, ...trees }: Traced, what = "train(): model"): Traced => {
  const expanded: Graph = expandCompositions(graph, () => false);
  const own = expanded.nodes.find(({ op }) => isUsersOperator(op));
  if (own !== undefined)
    throw new ModuleError(
      `${what}: its operator ${own.op} has kernels and no composition, and kernels are functions that cannot go to the threads of ranks; give it a composition, or put it into a module and name it: { kind: "module", file }`,
    );
  return { ...trees, graph: expanded };
};
