/** Which part of a step a node belongs to, by the scope that it was traced in. */
export type Phase = "forward" | "backward" | "update" | "communication" | "other";

/**
 * Tell the phase of a node. Derivatives are traced in `<scope>/backward`; a job's exchange, loss and update have scopes of their own. A node without a scope
 * was fused from several, or belongs to none.
 */
export const phaseOf = (op: string, scope: string): Phase => {
  if (op.startsWith("collective") || /^(exchange|mean-loss)/.test(scope)) return "communication";
  if (/^(update|finite|gradient-norm)/.test(scope)) return "update";
  if (/(^|\/)backward(\/|$)/.test(scope)) return "backward";
  return scope === "" ? "other" : "forward";
};

/** The part of the model that a scope names, without the mark of its derivative. */
export const modelScope = (scope: string): string => scope.replaceAll(/(^|\/)backward(?=\/|$)/g, "").replace(/^\//, "");
