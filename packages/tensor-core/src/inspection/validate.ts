import { InvariantError, OperatorError, SkeinError } from "../errors.ts";
import { operatorOf, withMeshOf } from "../ops/lookup.ts";
import { inputOperator } from "../ops/input.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import { elementCount, formatSpec, sameSpec, type TensorSpec } from "../shape.ts";
import type { Graph, Node } from "../graph/graph.ts";
import { isUserOperator } from "../graph/operator.ts";

const describe = (node: Node): string => `node ${node.id} (${node.op}${node.scope === "" ? "" : ` in ${node.scope}`})`;

const agrees = (op: string, inferred: TensorSpec, stated: TensorSpec): boolean =>
  operators[op]?.runsProgram === true
    ? inferred.dtype === stated.dtype && elementCount(inferred.shape) === elementCount(stated.shape)
    : sameSpec(inferred, stated);

const validateNode = (graph: Graph, node: Node): void => {
  const operands = node.inputs.map((ref): TensorSpec => {
    const spec = ref.node < node.id ? graph.nodes[ref.node]?.specs[ref.output] : undefined;
    if (spec === undefined)
      throw new InvariantError(
        `${describe(node)} reads value ${ref.node}:${ref.output}, which no earlier node computes`,
      );
    return spec;
  });
  const operator = operatorOf(graph, node.op);
  if (roleOf(node) === "argument") {
    if (node.specs.length !== 1 || node.inputs.length !== 0)
      throw new InvariantError(
        `${describe(node)} must have no operand and one output, it has ${node.inputs.length} and ${node.specs.length}`,
      );
    return;
  }
  const fault = (what: string): Error =>
    isUserOperator(node.op)
      ? new OperatorError(node.op, `${describe(node)} ${what}`)
      : new InvariantError(`${describe(node)} ${what}`);
  let inferred: TensorSpec[];
  try {
    inferred = withMeshOf(graph, () => operator.infer(operands, node.params));
  } catch (error) {
    const reason = error instanceof SkeinError ? error.message : String(error);
    throw fault(`does not accept ${operands.map(formatSpec).join(", ") || "no operands"}: ${reason}`);
  }
  if (
    inferred.length !== node.specs.length ||
    !inferred.every((spec, output) => agrees(node.op, spec, node.specs[output]!))
  ) {
    throw fault(
      `states the results ${node.specs.map(formatSpec).join(", ")}, but its operator infers ${inferred.map(formatSpec).join(", ")}`,
    );
  }
};

/**
 * Checks that each start node of a collective has exactly one done node, which reads all results of the start node and
 * no other values.
 */
const validateExchanges = (graph: Graph): void => {
  const waits = new Map<number, number>();
  for (const node of graph.nodes) {
    if (roleOf(node) === "done") {
      const start = node.inputs[0]?.node;
      const whole =
        start !== undefined &&
        roleOf(graph.nodes[start]!) === "start" &&
        node.inputs.length === graph.nodes[start]!.specs.length;
      if (!whole || node.inputs.some((ref, output) => ref.node !== start || ref.output !== output))
        throw new InvariantError(`${describe(node)} must take all results of one collective-start, in order`);
      waits.set(start, (waits.get(start) ?? 0) + 1);
    } else {
      const raw = node.inputs.find((ref) => roleOf(graph.nodes[ref.node]!) === "start");
      if (raw !== undefined)
        throw new InvariantError(
          `${describe(node)} reads value ${raw.node}:${raw.output} of a collective that may still be in progress`,
        );
    }
  }
  for (const node of graph.nodes) {
    if (roleOf(node) === "start" && waits.get(node.id) !== 1)
      throw new InvariantError(`${describe(node)} is waited for ${waits.get(node.id) ?? 0} times instead of once`);
  }
  const raw = graph.outputs.find((ref) => roleOf(graph.nodes[ref.node]!) === "start");
  if (raw !== undefined)
    throw new InvariantError(
      `the graph returns value ${raw.node}:${raw.output} of a collective that may still be in progress`,
    );
};

/**
 * Checks all invariants of a graph, and compares all specs with newly inferred specs.
 *
 * @throws InvariantError with the first node that violates an invariant; OperatorError if the node's operator is
 * undefined, or is a user's operator.
 */
export const validateGraph = (graph: Graph): void => {
  graph.nodes.forEach((node, position) => {
    if (node.id !== position)
      throw new InvariantError(`${describe(node)} is at position ${position}; the id of a node must be its position`);
    validateNode(graph, node);
  });
  const inputs = new Set(graph.inputs);
  for (const id of graph.inputs) {
    const node = graph.nodes[id];
    if (node === undefined || roleOf(node) !== "argument")
      throw new InvariantError(`graph input ${id} is not a node with op "${inputOperator.name}"`);
  }
  for (const node of graph.nodes)
    if (roleOf(node) === "argument" && !inputs.has(node.id))
      throw new InvariantError(`${describe(node)} is missing in the graph's list of inputs`);
  if (inputs.size !== graph.inputs.length)
    throw new InvariantError(`graph inputs [${graph.inputs.join(", ")}] name a node twice`);
  for (const ref of graph.outputs) {
    if (graph.nodes[ref.node]?.specs[ref.output] === undefined)
      throw new InvariantError(`the graph returns value ${ref.node}:${ref.output}, which no node computes`);
  }
  validateExchanges(graph);
};
