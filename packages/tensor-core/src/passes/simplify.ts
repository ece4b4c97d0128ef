import { roundToStorage } from "../dtype.ts";
import type { Graph, Node, ValueRef } from "../graph/graph.ts";
import type { RewriteContext, RewriteRule } from "../graph/rewrite-rule.ts";
import { broadcastToOperator } from "../ops/broadcast-to.ts";
import { operators } from "../ops/table.ts";
import { sameShape } from "../shape.ts";
import { type RewriteRules, rewriteGraph } from "./rewrite.ts";

/** Constant folding: an elementwise operator on constants becomes a constant, computed in f64. */
const foldConstants: RewriteRule = ({ op, inputs, params, specs }, { constantValue, constant, spec }) => {
  const scalar = operators[op]?.scalar;
  if (scalar === undefined || inputs.length === 0) return undefined;
  const values = inputs.map(constantValue);
  if (values.some((value) => value === undefined)) return undefined;
  // Kernels round a constant to its dtype when they load it, so compute with the rounded values.
  const loaded = values.map((value, i) => roundToStorage(value!, spec(inputs[i]!).dtype));
  return constant(specs[0]!, roundToStorage(scalar(loaded, params, spec(inputs[0]!).dtype), specs[0]!.dtype));
};

const broadcastSource = (ref: ValueRef, { producer }: RewriteContext): Node | undefined => {
  const node = producer(ref);
  return operators[node.op]?.stretches === true ? node : undefined;
};

/**
 * Computes before broadcasting: replaces `f(broadcast(x), c)` by `broadcast(f(x, c))`, which computes f only for the
 * elements of x.
 */
const computeThenBroadcast: RewriteRule = (node, context) => {
  const { op, inputs, specs } = node;
  if (operators[op]?.scalar === undefined) return undefined;
  const stretched = inputs.map((ref) => broadcastSource(ref, context));
  const source = stretched.find((operand) => operand !== undefined)?.inputs[0];
  if (source === undefined) return undefined;
  const { shape } = context.spec(source);
  const small: ValueRef[] = [];
  for (const [i, ref] of inputs.entries()) {
    const own = stretched[i]?.inputs[0];
    const value = context.constantValue(ref);
    if (own !== undefined && sameShape(context.spec(own).shape, shape)) small.push(own);
    else if (value !== undefined) small.push(context.constant({ dtype: context.spec(ref).dtype, shape }, value));
    else return undefined;
  }
  return context.emit(broadcastToOperator.name, [context.derive(node, small)], { shape: specs[0]!.shape });
};

const rulesOf = (key: "rewrites" | "foldRewrites"): RewriteRules =>
  Object.fromEntries(
    Object.values(operators).flatMap(({ name, [key]: rules }) => (rules === undefined ? [] : [[name, rules]])),
  );

const rules: RewriteRules = { ...rulesOf("rewrites"), "*": [foldConstants, computeThenBroadcast] };
const foldRules: RewriteRules = rulesOf("foldRewrites");

/**
 * Replaces nodes by cheaper nodes with equal results: identities are removed, consecutive data movements are merged,
 * transposed operands of a product become transpose flags, constants are folded, and elementwise operators run before
 * their operands are broadcast.
 *
 * The rules of an operator are in the file of the operator. Results are bitwise identical, with two exceptions. Zeros
 * may have another sign, because `x + 0` becomes `x`, and `x − scatter(v)` becomes a scatter of `−v` onto `x`. Folded
 * f32 constants are rounded once instead of at each operator. Unused nodes are kept; `eliminateDeadCode` removes unused
 * nodes.
 *
 * Cost: O(nodes + edges).
 */
export const simplify = (graph: Graph): Graph => rewriteGraph(graph, rules);

/**
 * Replaces nodes by nodes with equal results that are cheaper if reductions are fused into the kernels of their
 * operands.
 */
export const simplifyForFolds = (graph: Graph): Graph => rewriteGraph(graph, foldRules);
