/** Scope name of the nodes of a gate. */
export const gateScope = "gate";

/**
 * Whether a node belongs to the gate of a layer, in forward or backward. Mixed precision must keep these nodes in f32,
 * because rounding would change the order of close scores.
 *
 * @example jit(step, backend, { passes: [(graph) => mixedPrecision(graph, { keeps: isGateNode })] })
 */
export const isGateNode = ({ scope }: { readonly scope: string }): boolean => scope.split("/").includes(gateScope);
