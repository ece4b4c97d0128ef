import { InvariantError } from "../errors.ts";
import {
  encodeNumber,
  type Graph,
  keepDefinitions,
  type Node,
  originOf,
  ownOrigin,
  type Params,
  type ValueRef,
} from "../graph/graph.ts";
import { operators } from "../ops/table.ts";
import type { RewriteContext, RewriteRule } from "../graph/rewrite-rule.ts";
import { constantOperator } from "../ops/constant.ts";
import { roleOf } from "../ops/role.ts";
import { formatSpec, sameSpec } from "../shape.ts";

/** Rewrite rules by operator name. Rules under `*` are tried on every operator, after the operator's rules. */
export type RewriteRules = { readonly [op: string]: readonly RewriteRule[] };

/**
 * Rebuilds the graph node by node, and applies the rules to each added node. Operands are already rewritten, and nodes
 * that rules emit are also rewritten, so one pass reaches a fixed point for rules that inspect only operands. Unused
 * nodes are kept; dead-code elimination removes them.
 *
 * @throws InvariantError if a rule changes the dtype or shape of a value, or calls `emit` instead of `derive` for the
 * operator that it replaces.
 */
export const rewriteGraph = (graph: Graph, rules: RewriteRules): Graph => {
  const nodes: Node[] = [];
  /** New value of each output, by the id of the old node and the output index. */
  const moved: ValueRef[][] = [];
  const resolve = (ref: ValueRef): ValueRef => moved[ref.node]![ref.output]!;
  const append = (node: Omit<Node, "id">): ValueRef => {
    nodes.push({ ...node, id: nodes.length });
    return { node: nodes.length - 1, output: 0 };
  };
  let origin = ownOrigin;
  /** Operators of the nodes that rules are currently replacing, outermost first. */
  const replaced: string[] = [];

  const applyRules = (node: Omit<Node, "id">): ValueRef | undefined => {
    if (node.specs.length !== 1) return undefined;
    for (const rule of [...(rules[node.op] ?? []), ...(rules["*"] ?? [])]) {
      replaced.push(node.op);
      const replacement = rule({ ...node, id: -1 }, context);
      replaced.pop();
      if (replacement === undefined) continue;
      const [before, after] = [node.specs[0]!, context.spec(replacement)];
      if (!sameSpec(before, after))
        throw new InvariantError(
          `rule ${rule.name} replaced ${node.op} of ${formatSpec(before)} by ${formatSpec(after)}; a rewrite must keep dtype and shape`,
        );
      return replacement;
    }
    return undefined;
  };
  const add = (op: string, inputs: readonly ValueRef[], params: Params): ValueRef => {
    const operator = operators[op];
    if (operator === undefined)
      throw new InvariantError(`a rewrite emitted operator "${op}", which is not in the operator table`);
    const node = { op, inputs, params, specs: operator.infer(inputs.map(context.spec), params), ...origin };
    return applyRules(node) ?? append(node);
  };
  const emit = (op: string, inputs: readonly ValueRef[], params: Params = {}): ValueRef => {
    if (op === replaced.at(-1))
      throw new InvariantError(
        `a rule for ${op} emitted ${op} with new params; use derive(), which keeps all other params`,
      );
    return add(op, inputs, params);
  };
  const context: RewriteContext = {
    producer: (ref) => nodes[ref.node]!,
    spec: (ref) => nodes[ref.node]!.specs[ref.output]!,
    derive: ({ op, params }, inputs, changes = {}) => add(op, inputs, { ...params, ...changes }),
    emit,
    constant: (spec, value) =>
      add(constantOperator.name, [], { dtype: spec.dtype, shape: [...spec.shape], value: encodeNumber(value) }),
    constantValue: (ref) => {
      const { op, params } = nodes[ref.node]!;
      const value = operators[op]?.constantValue?.(params);
      return value === undefined ? undefined : Number(value);
    },
  };

  for (const node of graph.nodes) {
    origin = originOf(node);
    const resolved = {
      op: node.op,
      inputs: node.inputs.map(resolve),
      params: node.params,
      specs: node.specs,
      ...origin,
    };
    const replacement = roleOf(node) === "argument" ? undefined : applyRules(resolved);
    const now = replacement ?? append(resolved);
    moved.push(node.specs.map((_, output) => ({ node: now.node, output: now.output + output })));
  }
  return keepDefinitions(graph, {
    nodes,
    inputs: graph.inputs.map((id) => resolve({ node: id, output: 0 }).node),
    outputs: graph.outputs.map(resolve),
  });
};
