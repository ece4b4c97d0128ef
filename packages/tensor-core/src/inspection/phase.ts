import { operators } from "../ops/table.ts";
import type { Node, Phase } from "../graph/graph.ts";

/**
 * Returns the phase to which a node's time is attributed: `communication` for collectives, and for other nodes the
 * phase in which the node was emitted. A collective's node keeps the phase in which it was emitted, to distinguish an
 * all-reduce in the forward pass of a model from one in the backward pass.
 */
export const phaseOf = ({ op, phase }: Pick<Node, "op" | "phase">): Phase => {
  const operator = operators[op];
  const moves = operator?.collective !== undefined && operator.role !== "position";
  return moves || operator?.role === "done" ? "communication" : phase;
};

/** Returns the model part of a scope: the path without the `backward` components of derivatives. */
export const modelScope = (scope: string): string => scope.replaceAll(/(^|\/)backward(?=\/|$)/g, "").replace(/^\//, "");
