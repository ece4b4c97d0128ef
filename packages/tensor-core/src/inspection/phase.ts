import { operators } from "../ops/table.ts";
import type { Node, Phase } from "../graph/graph.ts";

/**
 * Tell which part of a step a node's time belongs to: what it was emitted as, but for collectives, which are
 * communication wherever they stand. That a node communicates follows from its operator; its own phase says on which
 * side of differentiation it stands, which an all-reduce inside of a model needs, too.
 */
export const phaseOf = ({ op, phase }: Pick<Node, "op" | "phase">): Phase => {
  const operator = operators[op];
  const moves = operator?.collective !== undefined && operator.role !== "position";
  return moves || operator?.role === "done" ? "communication" : phase;
};

/** The part of the model that a scope names, without the mark of its derivative. */
export const modelScope = (scope: string): string => scope.replaceAll(/(^|\/)backward(?=\/|$)/g, "").replace(/^\//, "");
