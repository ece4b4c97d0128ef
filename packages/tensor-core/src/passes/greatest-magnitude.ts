import type { Graph, Node, ValueRef } from "../graph/graph.ts";
import { type RewriteContext, type RewriteRule, rewriteGraph } from "./rewrite.ts";

/** What `reduce` was taken of, and over which dimensions, if `ref` is that up to reshapes and one negation. */
const reduced = (
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

const rule: RewriteRule = ({ inputs, specs: [spec] }, context) => {
  for (const [a, b] of [inputs, inputs.toReversed()] as [ValueRef, ValueRef][]) {
    const greatest = reduced(a, "reduce-max", context);
    const least = reduced(b, "reduce-min", context);
    if (greatest === undefined || least === undefined || greatest.dims.join() !== least.dims.join()) continue;
    if (greatest.x.node !== least.x.node || greatest.x.output !== least.x.output || context.spec(greatest.x).dtype !== "f32") continue;
    const magnitude = context.derive(greatest.node, [context.emit("absolute", [greatest.x])]);
    return context.emit("reshape", [magnitude], { shape: [...spec!.shape] });
  }
  return undefined;
};

/**
 * Write `max(max(x), −min(x))` as `max(|x|)`: the same bits by one fold instead of two, where a fold takes magnitudes without writing them.
 * Elsewhere two reads of x are less than what |x| costs.
 */
export const foldGreatestMagnitude = (graph: Graph): Graph => rewriteGraph(graph, { maximum: [rule] });
