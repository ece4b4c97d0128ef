import type { Graph } from "../graph/graph.ts";
import { type RewriteRules, rewriteGraph } from "./rewrite.ts";
import { arithmeticRules } from "./simplify-arithmetic.ts";
import { movementRules } from "./simplify-movement.ts";

const rules: RewriteRules = { ...movementRules, ...arithmeticRules };

/**
 * Replace nodes by cheaper equal ones: identities vanish, movements of movements collapse, transposed operands of a product
 * become its flags, constants are folded, and elementwise operators run before their operands are stretched.
 *
 * The rules stand in `simplify-movement.ts` (all exact) and `simplify-arithmetic.ts` (its comment names the two roundings that
 * differ). Nodes left without users remain; `eliminateDeadCode` takes them.
 *
 * Cost: O(nodes + edges).
 */
export const simplify = (graph: Graph): Graph => rewriteGraph(graph, rules);
