import {
  add,
  evaluate,
  flattenTree,
  leafPaths,
  type NdArray,
  randomKey,
  referenceBackend,
  subtract,
  sum,
  type Tensor,
  trace,
  valueAndGradWithAux,
  vjp,
} from "@skein/tensor-core";
import { emit, layersOf, type LayerUse, replay } from "@skein/tensor-core/backend";
import { describe, expect, it } from "vitest";
import type { LabelledBatch } from "../src/index.ts";
import { type ModelRow, modelRows } from "./model-rows.ts";

/** Returns the traced training step of a row of `modelRows`, with its arguments. */
const stepOf = async ({ model, batch }: ModelRow) => {
  const backend = referenceBackend();
  const made = await evaluate(
    (key: Tensor) => model.init(key) as { params: unknown; state: unknown },
    backend,
  )(randomKey(3) as never);
  const args = [made.params, made.state, { ...batch }];
  const traced = trace(
    (params: unknown, state: unknown, labelled: LabelledBatch) =>
      valueAndGradWithAux((own: unknown) => model.loss(own, state, labelled, { train: true }))(params)[2],
    args as never,
  );
  return { traced, paths: leafPaths(made.params), leaves: flattenTree<NdArray>(args).leaves };
};

/** Returns the part of a weight's gradient that comes from a single use of the weight. */
const gradientOf = (
  use: LayerUse,
  graph: ReturnType<typeof trace>["graph"],
  weight: Tensor,
  values: ReadonlyMap<string, Tensor>,
): Tensor => {
  const value = (ref: { readonly node: number; readonly output: number }): Tensor =>
    values.get(`${ref.node}:${ref.output}`)!;
  const apply = (own: Tensor): Tensor => {
    const carried = use.path.reduce((x, id) => emit(graph.nodes[id]!.op, [x], graph.nodes[id]!.params)[0]!, own);
    const operands = graph.nodes[use.node]!.inputs.map((ref, i) => (i === use.operand ? carried : value(ref)));
    return emit(graph.nodes[use.node]!.op, operands, use.params)[0]!;
  };
  return vjp(apply, weight).pullback(value(use.outputGradient));
};

/**
 * Paths of parameters that no layer uses directly: positions are sliced or added, a class token is broadcast, a group
 * norm consists of other operators, and the small digit network adds the biases of its convolutions after pooling.
 */
const outside = /^(positions_TD|positions|classToken|groups\..*|conv[12]\.bias)$/;

describe.each(modelRows.map((row) => [row.name, row] as const))("layers of %s", (_, row) => {
  it("cover every weight, and their inputs and output gradients give the weight's gradient", async () => {
    const { traced, paths, leaves } = await stepOf(row);
    const { graph } = traced;
    const layers = layersOf(traced);
    expect(layers).toHaveLength(paths.length);
    const weights = layers.flatMap((layer, leaf) => (layer.uses.length > 0 ? [{ layer, leaf }] : []));
    const others = layers.flatMap(({ uses, biasOf, unresolved }, leaf) =>
      uses.length + biasOf.length === 0 || unresolved.length > 0 ? [paths[leaf]!] : [],
    );
    expect(others.filter((path) => !outside.test(path))).toEqual([]);
    expect(weights.length).toBeGreaterThan(1);

    const wanted = weights.flatMap(({ layer }) => [
      layer.weight,
      ...layer.uses.flatMap((use) => [...graph.nodes[use.node]!.inputs, use.outputGradient]),
    ]);
    const compare = (...inputs: Tensor[]): Tensor[] => {
      const results = replay({ ...graph, outputs: [...graph.outputs, ...wanted] }, inputs);
      const values = new Map(wanted.map((ref, i) => [`${ref.node}:${ref.output}`, results[graph.outputs.length + i]!]));
      return weights.map(({ layer, leaf }) => {
        const weight = values.get(`${layer.weight.node}:${layer.weight.output}`)!;
        const total = layer.uses.map((use) => gradientOf(use, graph, weight, values)).reduce(add);
        const difference = subtract(total, results[leaf]!);
        return sum(emit("absolute", [difference])[0]!);
      });
    };
    const differences = (await evaluate(compare, referenceBackend())(...(leaves as never[]))) as unknown as NdArray[];
    for (const [i, { leaf }] of weights.entries())
      expect(differences[i]!.toNumbers()[0], paths[leaf]).toBeLessThan(1e-9);
  });
});
