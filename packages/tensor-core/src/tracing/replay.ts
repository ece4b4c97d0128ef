import { ArgumentError } from "../errors.ts";
import { roleOf } from "../ops/role.ts";
import { formatSpec, sameSpec } from "../shape.ts";
import { definitionsOf } from "../graph/definitions.ts";
import { currentTrace, emit } from "../graph/emit.ts";
import { type Graph, type Origin, specOf, type ValueRef, valueKey } from "../graph/graph.ts";
import { addDefinition } from "../graph/operator.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * What runs the functions that emit the nodes of a graph anew: in their scopes and regions within the running ones, and
 * in their phases unless that is `forward`, which is what a traced function has where it stands.
 */
const replayOrigin = (): (<T>(origin: Origin, fn: () => T) => T) => {
  const state = currentTrace("replay");
  const numbers = new Map<string, number>();
  const renumbered = (region: string): string =>
    region
      .split("/")
      .map((number) => numbers.get(number) ?? (numbers.set(number, state.numRegions++), numbers.get(number)!))
      .join("/");
  return ({ scope: path, phase, region }, fn) => {
    const outer = { scope: state.scope, phase: state.phase, region: state.region };
    if (path !== "") state.scope = outer.scope === "" ? path : `${outer.scope}/${path}`;
    if (phase !== "forward") state.phase = phase;
    if (region !== "")
      state.region = outer.region === "" ? renumbered(region) : `${outer.region}/${renumbered(region)}`;
    try {
      return fn();
    } finally {
      Object.assign(state, outer);
    }
  };
};

export interface ReplayOptions {
  /**
   * Called with each value of the graph as soon as it is there, inputs first. What it emits stands there, before the
   * nodes that follow: statistics of a layer beside the layer.
   */
  readonly onValue?: (ref: ValueRef, value: Tensor) => void;
}

/**
 * Apply a graph inside the running trace, as if the function that it was traced from were called again: its nodes are
 * appended with these tensors as inputs, so gradients flow through them. A graph is plain data and can come from
 * another thread, where its function cannot go.
 *
 * @param inputs one tensor per input of the graph, of its dtype and shape.
 * @returns one tensor per output.
 * @throws ArgumentError for other inputs than it was traced with.
 */
export const replay = (graph: Graph, inputs: readonly Tensor[], { onValue }: ReplayOptions = {}): Tensor[] => {
  if (inputs.length !== graph.inputs.length)
    throw new ArgumentError(
      `replay: ${inputs.length} tensors were given for the ${graph.inputs.length} inputs of the graph; give one for each`,
    );
  const values = new Map<string, Tensor>();
  const settle = (ref: ValueRef, value: Tensor): void => {
    values.set(valueKey(ref), value);
    onValue?.(ref, value);
  };
  graph.inputs.forEach((node, i) => {
    const expected = specOf(graph, { node, output: 0 });
    if (!sameSpec(inputs[i]!, expected))
      throw new ArgumentError(
        `replay: input ${i} is ${formatSpec(inputs[i]!)}, but the graph was traced with ${formatSpec(expected)}; trace it again for other shapes`,
      );
    settle({ node, output: 0 }, inputs[i]!);
  });
  const { definitions } = currentTrace("replay");
  for (const operator of definitionsOf(graph).operators.values()) addDefinition(definitions, operator);
  const within = replayOrigin();
  for (const node of graph.nodes) {
    const { id, op, inputs: refs, params } = node;
    if (roleOf(node) === "argument") continue;
    const apply = (): Tensor[] =>
      emit(
        op,
        refs.map((ref) => values.get(valueKey(ref))!),
        params,
      );
    const results = within(node, apply);
    results.forEach((result, output) => settle({ node: id, output }, result));
  }
  return graph.outputs.map((ref) => values.get(valueKey(ref))!);
};
