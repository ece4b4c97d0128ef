import { ArgumentError } from "../errors.ts";
import { roleOf } from "../ops/role.ts";
import { formatSpec, sameSpec } from "../shape.ts";
import { definitionsOf } from "../graph/definitions.ts";
import { currentTrace, emit } from "../graph/emit.ts";
import { type Graph, type Origin, specOf, type ValueRef, valueKey } from "../graph/graph.ts";
import { addDefinition } from "../graph/operator.ts";
import type { Tensor } from "../graph/tensor.ts";

/**
 * Creates a function that runs `fn` with the origin of a replayed node. Scope and region of the origin are nested in
 * the scope and region of the running trace. The phase of the origin is used, except `forward`, which is replaced by
 * the phase of the running trace.
 */
const replayOrigin = (): (<T>(origin: Origin, fn: () => T) => T) => {
  const state = currentTrace("replay");
  const numbers = new Map<string, number>();
  const renumber = (region: string): string =>
    region
      .split("/")
      .map((number) => numbers.get(number) ?? (numbers.set(number, state.numRegions++), numbers.get(number)!))
      .join("/");
  return ({ scope: path, phase, region }, fn) => {
    const outer = { scope: state.scope, phase: state.phase, region: state.region };
    if (path !== "") state.scope = outer.scope === "" ? path : `${outer.scope}/${path}`;
    if (phase !== "forward") state.phase = phase;
    if (region !== "") state.region = outer.region === "" ? renumber(region) : `${outer.region}/${renumber(region)}`;
    try {
      return fn();
    } finally {
      Object.assign(state, outer);
    }
  };
};

export interface ReplayOptions {
  /**
   * Called with each value of the graph immediately after it is created; inputs first. Nodes emitted by the callback
   * precede the remaining nodes of the graph. Example: statistics of a layer, computed next to the layer.
   */
  readonly onValue?: (ref: ValueRef, value: Tensor) => void;
}

/**
 * Applies a graph inside the running trace, as if its traced function were called again: appends the graph's nodes with
 * `inputs` as arguments, so gradients flow through the nodes. Unlike a function, a graph is plain data and can come
 * from another thread.
 *
 * @param inputs One tensor per input of the graph, with the same dtype and shape.
 * @returns One tensor per output of the graph.
 * @throws ArgumentError if the number, dtypes or shapes of inputs differ from the graph's inputs.
 */
export const replay = (graph: Graph, inputs: readonly Tensor[], { onValue }: ReplayOptions = {}): Tensor[] => {
  if (inputs.length !== graph.inputs.length)
    throw new ArgumentError(
      `replay: ${inputs.length} tensors were given for the ${graph.inputs.length} inputs of the graph; pass one per input`,
    );
  const values = new Map<string, Tensor>();
  const setValue = (ref: ValueRef, value: Tensor): void => {
    values.set(valueKey(ref), value);
    onValue?.(ref, value);
  };
  graph.inputs.forEach((node, i) => {
    const expected = specOf(graph, { node, output: 0 });
    if (!sameSpec(inputs[i]!, expected))
      throw new ArgumentError(
        `replay: input ${i} is ${formatSpec(inputs[i]!)}, but the graph was traced with ${formatSpec(expected)}; trace it again for other shapes`,
      );
    setValue({ node, output: 0 }, inputs[i]!);
  });
  const { definitions } = currentTrace("replay");
  for (const operator of definitionsOf(graph).operators.values()) addDefinition(definitions, operator);
  const runWithOrigin = replayOrigin();
  for (const node of graph.nodes) {
    const { id, op, inputs: refs, params } = node;
    if (roleOf(node) === "argument") continue;
    const apply = (): Tensor[] =>
      emit(
        op,
        refs.map((ref) => values.get(valueKey(ref))!),
        params,
      );
    const results = runWithOrigin(node, apply);
    results.forEach((result, output) => setValue({ node: id, output }, result));
  }
  return graph.outputs.map((ref) => values.get(valueKey(ref))!);
};
