import { operators } from "../ops/table.ts";
import type { Node, Phase } from "../graph/graph.ts";

/**
 * Phase that a node's time is counted in: the phase in which it was emitted, except for collectives, which always count
 * as communication. The operator already identifies a collective. Its own phase distinguishes the forward from the
 * backward pass, which matters for an all-reduce inside a model.
 */
export const phaseOf = ({ op, phase }: Pick<Node, "op" | "phase">): Phase => {
  const operator = operators[op];
  const moves = operator?.collective !== undefined && operator.role !== "position";
  return moves || operator?.role === "done" ? "communication" : phase;
};

/** Part of the model that a scope refers to, without the marks of derivatives. */
export const modelScope = (scope: string): string => scope.replaceAll(/(^|\/)backward(?=\/|$)/g, "").replace(/^\//, "");
