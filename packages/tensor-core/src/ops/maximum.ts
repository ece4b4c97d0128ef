import { arithmetic } from "../dtype.ts";
import { equal, less, multiply, where } from "../functions/elementwise.ts";
import type { Node, ValueRef } from "../graph/graph.ts";
import type { Operator } from "../graph/operator.ts";
import type { RewriteContext, RewriteRule } from "../graph/rewrite-rule.ts";
import { elementwise } from "./shared/elementwise.ts";

/**
 * Returns the reduction node that computes `ref`, with its operand and dimensions. Reshapes between the node and `ref`
 * are ignored. `reduce-max` must not be negated; `reduce-min` must be negated. Undefined if no such node computes
 * `ref`.
 */
const findReduction = (
  ref: ValueRef,
  reduce: "reduce-max" | "reduce-min",
  { producer }: RewriteContext,
): { readonly node: Node; readonly x: ValueRef; readonly dims: readonly number[] } | undefined => {
  let [node, isNegated] = [producer(ref), false];
  while (node.op === "reshape" || (node.op === "negate" && !isNegated)) {
    isNegated ||= node.op === "negate";
    node = producer(node.inputs[0]!);
  }
  if (node.op !== reduce || isNegated !== (reduce === "reduce-min")) return undefined;
  return { node, x: node.inputs[0]!, dims: node.params["dims"] as readonly number[] };
};

/**
 * Rewrites `max(max(x), −min(x))` as `max(|x|)`, which needs one reduction instead of two. The result is bitwise
 * identical. This rule is only for backends that fuse reductions into the kernels of their operands, and therefore do
 * not write |x| to memory. On other backends, reading x twice is cheaper than writing |x|.
 */
const greatestMagnitude: RewriteRule = ({ inputs, specs: [spec] }, context) => {
  for (const [a, b] of [inputs, inputs.toReversed()] as [ValueRef, ValueRef][]) {
    const greatest = findReduction(a, "reduce-max", context);
    const least = findReduction(b, "reduce-min", context);
    if (greatest === undefined || least === undefined || greatest.dims.join() !== least.dims.join()) continue;
    if (
      greatest.x.node !== least.x.node ||
      greatest.x.output !== least.x.output ||
      context.spec(greatest.x).dtype !== "f32"
    )
      continue;
    const magnitude = context.derive(greatest.node, [context.emit("absolute", [greatest.x])]);
    return context.emit("reshape", [magnitude], { shape: [...spec!.shape] });
  }
  return undefined;
};

/**
 * Maximum of `a` and `b`; NaN if either operand is NaN. The gradient flows to the larger operand. If `a` and `b` are
 * equal, each operand receives half of the gradient. If either operand is NaN, each operand receives the whole
 * gradient, as in PyTorch.
 */
export const maximumOperator: Operator = elementwise({
  name: "maximum",
  foldRewrites: [greatestMagnitude],
  commutative: true,
  arity: 2,
  dtypes: arithmetic,
  scalar: ([a, b]) => Math.max(a!, b!),
  vjp: ({ inputs: [a, b], cotangents: [g] }) => {
    const shared = where(equal(a!, b!), multiply(g!, 0.5), g!);
    return [where(less(a!, b!), 0, shared), where(less(b!, a!), 0, shared)];
  },
});
