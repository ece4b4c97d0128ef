import type { Mesh, MeshCoordinates } from "./emit.ts";
import { definitionsKey, type Graph } from "./graph.ts";
import { addDefinition, type Operator } from "./operator.ts";

/** Definitions of the users' operators in a graph. Nodes contain only operator names. */
export interface Definitions {
  readonly operators: ReadonlyMap<string, Operator>;
  /** Mesh that the graph was traced for; required to trace compositions that contain collectives. */
  readonly mesh: Mesh;
  /** Mesh coordinates of the rank that the graph was traced for. Absent: traced for any rank. */
  readonly place?: MeshCoordinates;
}

const none: Definitions = { operators: new Map(), mesh: {} };

/** Returns the definitions of the users' operators in a graph. Empty for a graph that was received as data. */
export const definitionsOf = (graph: Graph): Definitions => (graph[definitionsKey] as Definitions | undefined) ?? none;

/** Returns `graph` with additional definitions; the same object if `added` is empty. */
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
