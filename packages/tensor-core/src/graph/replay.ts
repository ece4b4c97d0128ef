import { ArgumentError } from "../errors.ts";
import { formatSpec, sameSpec } from "../shape.ts";
import { emit, scope } from "./emit.ts";
import { type Graph, specOf, valueKey } from "./graph.ts";
import type { Tensor } from "./tensor.ts";

/**
 * Apply a graph inside the running trace, as if the function that it was traced from were called again: its nodes are appended with these
 * tensors as inputs, so gradients flow through them. A graph is plain data and can come from another thread, where its function cannot go.
 *
 * @param inputs one tensor per input of the graph, of its dtype and shape.
 * @returns one tensor per output.
 * @throws ArgumentError for other inputs than it was traced with.
 */
export const replay = (graph: Graph, inputs: readonly Tensor[]): Tensor[] => {
  if (inputs.length !== graph.inputs.length)
    throw new ArgumentError(
      `replay: ${inputs.length} tensors were given for the ${graph.inputs.length} inputs of the graph; give one for each`,
    );
  const values = new Map<string, Tensor>();
  graph.inputs.forEach((node, i) => {
    const expected = specOf(graph, { node, output: 0 });
    if (!sameSpec(inputs[i]!, expected))
      throw new ArgumentError(
        `replay: input ${i} is ${formatSpec(inputs[i]!)}, but the graph was traced with ${formatSpec(expected)}; trace it again for other shapes`,
      );
    values.set(valueKey({ node, output: 0 }), inputs[i]!);
  });
  for (const { id, op, inputs: refs, params, scope: path } of graph.nodes) {
    if (op === "input") continue;
    const apply = (): Tensor[] =>
      emit(
        op,
        refs.map((ref) => values.get(valueKey(ref))!),
        params,
      );
    const results = path === "" ? apply() : scope(path, apply);
    results.forEach((result, output) => values.set(valueKey({ node: id, output }), result));
  }
  return graph.outputs.map((ref) => values.get(valueKey(ref))!);
};
