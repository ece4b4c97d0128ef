/** Part of the path of scopes that says that a node belongs to a gate. */
export const gateScope = "gate";

/**
 * Whether a node belongs to the gate of a layer, in forward or backward: what mixed precision must leave in f32, since
 * scores that lie near each other would be rounded to others.
 *
 * @example jit(step, backend, { passes: [(graph) => mixedPrecision(graph, { keeps: isOfGate })] })
 */
export const isOfGate = ({ scope }: { readonly scope: string }): boolean => scope.split("/").includes(gateScope);
