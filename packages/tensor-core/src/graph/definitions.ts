import type { Mesh, MeshPlace } from "./emit.ts";
import { definitionsKey, type Graph } from "./graph.ts";
import { addDefinition, type Operator } from "./operator.ts";

/** What functions of users' operators need that is not in the nodes of a graph. */
export interface Definitions {
  readonly operators: ReadonlyMap<string, Operator>;
  /** The mesh that the graph was traced for: a composition may hold collectives. */
  readonly mesh: Mesh;
  /** The rank that it was traced for, as far as it was for one. */
  readonly place?: MeshPlace;
}

const none: Definitions = { operators: new Map(), mesh: {} };

/** How the users' operators of a graph were defined. Empty for a graph that came from elsewhere as data. */
export const definitionsOf = (graph: Graph): Definitions => (graph[definitionsKey] as Definitions | undefined) ?? none;

/** A graph with these definitions beside those that it has; itself where there are none to add. */
export const addDefinitions = (graph: Graph, added: Definitions): Graph => {
  if (added.operators.size === 0) return graph;
  const known = definitionsOf(graph);
  const operators = new Map(known.operators);
  for (const operator of added.operators.values()) addDefinition(operators, operator);
  return {
    ...graph,
    [definitionsKey]: {
      operators,
      mesh: { ...known.mesh, ...added.mesh },
      place: { ...known.place, ...added.place },
    } satisfies Definitions,
  };
};
