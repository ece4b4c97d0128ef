import { findOperator } from "../ops/lookup.ts";
import type { FusedParams } from "../ops/fused.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import type { TensorSpec } from "../shape.ts";
import { nodeCost } from "./cost.ts";
import type { Graph, Node, ParamValue, ValueRef } from "../graph/graph.ts";

export interface PrintOptions {
  /** Whether to print the flops and bytes (read + written) of each node. Default: false. */
  readonly cost?: boolean;
}

const formatParam = (value: ParamValue): string => {
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${(value as readonly ParamValue[]).map(formatParam).join(", ")}]`;
  return `{${Object.entries(value)
    .map(([key, part]) => `${key}: ${formatParam(part)}`)
    .join(", ")}}`;
};

const formatSpecs = (specs: readonly TensorSpec[]): string => {
  const texts = specs.map(({ dtype, shape }) => `${dtype}[${shape.join(",")}]`);
  return texts.length === 1 ? texts[0]! : `(${texts.join(", ")})`;
};

/** Formats a fused program as formulas. Registers that are used once are inlined. */
const formatProgram = (params: FusedParams, operands: readonly string[]): string => {
  const { views, instructions, results, folds = [] } = params;
  // A folded result has a separate formula; other results are named where they are computed.
  const unfolded = results.filter((_, i) => (folds[i] ?? null) === null);
  const nameOf = (output: number): string => `out${results.length === 1 ? "" : output}`;
  const uses = new Map<number, number>();
  for (const register of [...results, ...instructions.flatMap(({ args }) => args)])
    uses.set(register, (uses.get(register) ?? 0) + 1);
  const texts = operands.map((operand, i) =>
    views[i]!.strides.some((stride, dim) => stride === 0 && params.shape[dim]! > 1) ? `broadcast(${operand})` : operand,
  );
  const formulas: string[] = [];
  for (const [i, { op, args, dtype, params: own }] of instructions.entries()) {
    const register = operands.length + i;
    const parts = args.map((arg) => texts[arg]!);
    const { constantValue, formula } = operators[op] ?? {};
    const text =
      constantValue === undefined
        ? (formula?.(parts, { ...own, dtype }) ?? `${op}(${parts.join(", ")})`)
        : String(constantValue(own));
    const isResult = unfolded.includes(register);
    if (constantValue !== undefined || (!isResult && uses.get(register) === 1)) texts.push(text);
    else {
      const name = isResult
        ? nameOf(results.findIndex((result, output) => result === register && (folds[output] ?? null) === null))
        : `t${i}`;
      formulas.push(
        `${name} = ${text.replace(/^\((.*)\)$/, (whole, inner: string) => (isBalanced(inner) ? inner : whole))}`,
      );
      texts.push(name);
    }
  }
  for (const [output, fold] of folds.entries())
    if (fold !== null) formulas.push(`${nameOf(output)} = ${fold.op}(${texts[results[output]!]!}, ${fold.size})`);
  return `{ ${formulas.join("; ")} }`;
};

/** Whether the parentheses in `text` are balanced. */
const isBalanced = (text: string): boolean => {
  let depth = 0;
  for (const letter of text) {
    if (letter === "(") depth++;
    else if (letter === ")" && --depth < 0) return false;
  }
  return depth === 0;
};

const formatParams = (node: Node, operands: readonly string[]): string => {
  if (operators[node.op]?.runsProgram === true)
    return ` ${formatProgram(node.params as unknown as FusedParams, operands)}`;
  // The start node of the collective already prints the parameters.
  if (roleOf(node) === "done") return "";
  // Omit the result's shape and dtype, which are already printed, and false flags.
  const printed = Object.entries(node.params).filter(
    ([key, value]) => !["dtype", "index", "shape"].includes(key) && value !== false,
  );
  return printed.length === 0 ? "" : ` {${printed.map(([key, value]) => `${key}: ${formatParam(value)}`).join(", ")}}`;
};

const formatCount = (count: number, unit: string): string => {
  const prefix = ["", "k", "M", "G", "T", "P"];
  const step = count < 1000 ? 0 : Math.min(Math.floor(Math.log10(count) / 3), prefix.length - 1);
  return `${Number((count / 1000 ** step).toPrecision(3))} ${prefix[step]!}${unit}`;
};

/**
 * Formats a graph as text: one line per node, and a heading when the scope changes.
 *
 * ```
 * conv1
 *   %12 = conv2d(%3, %4) f32[64,28,28,32] {stride: [1, 1]}
 * return %12
 * ```
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(x, 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(printGraph(graph).includes("add")); // true
 * ```
 */
export const printGraph = (graph: Graph, { cost = false }: PrintOptions = {}): string => {
  const name = (ref: ValueRef): string =>
    graph.nodes[ref.node]!.specs.length === 1 ? `%${ref.node}` : `%${ref.node}.${ref.output}`;
  const lines: string[] = [];
  let scope = "";
  for (const node of graph.nodes) {
    if (node.scope !== scope) {
      scope = node.scope;
      lines.push(scope === "" ? "(no scope)" : scope);
    }
    const operands = node.inputs.map(name);
    let line = `${scope === "" && !lines.includes("(no scope)") ? "" : "  "}%${node.id} = ${node.op}(${operands.join(", ")}) ${formatSpecs(node.specs)}${formatParams(node, operands)}`;
    if (cost && findOperator(graph, node.op) !== undefined) {
      const { flops, bytesRead, bytesWritten } = nodeCost(graph, node);
      if (flops + bytesRead + bytesWritten > 0)
        line += `  # ${formatCount(flops, "flop")}, ${formatCount(bytesRead + bytesWritten, "B")}`;
    }
    lines.push(line);
  }
  return [...lines, `return ${graph.outputs.map(name).join(", ")}`].join("\n");
};
