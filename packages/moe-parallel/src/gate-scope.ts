/** Name of the scope that contains a gate's nodes. */
export const gateScope = "gate";

/**
 * Whether a node belongs to the gate of a layer, in forward or backward. Mixed precision must use f32 for the nodes of
 * gates, because rounding would change the order of close scores.
 *
 * @example
 * ```ts
 * const step = (key: Tensor) => switchGate({ width: 4, numExperts: 2 }).init(key).params.weight_DE;
 * const passes = [(graph: Graph) => mixedPrecision(graph, { keeps: isGateNode })]; // gates compute in f32
 * console.log((await jit(step, referenceBackend(), { passes })(randomKey(1))).shape); // [4, 2]
 * ```
 */
export const isGateNode = ({ scope }: { readonly scope: string }): boolean => scope.split("/").includes(gateScope);
