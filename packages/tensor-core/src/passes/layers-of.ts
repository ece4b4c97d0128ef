import type { Derivatives } from "../graph/emit.ts";
import { type Graph, type Node, type Params, specOf, type ValueRef, valueKey } from "../graph/graph.ts";
import { kernelNodeOf } from "../graph/kernel-node.ts";
import type { LayerKind, LayerReading } from "../graph/operator.ts";
import { operators } from "../ops/table.ts";

/** One application of a weight: `output = layer(input, weight)`. All values are references to the traced graph. */
export interface LayerUse {
  readonly kind: LayerKind;
  /** Id of the node that applies the weight. `params`: parameters of the node, such as transposes, strides, ε. */
  readonly node: number;
  readonly params: Params;
  /** Input of the layer: activations, images, or the row indices of an embedding. */
  readonly input: ValueRef;
  /**
   * Value that the node reads as its weight: the leaf itself, or the leaf after casts, transposes or reshapes. The
   * field `operand` is the operand index of this value.
   */
  readonly weight: ValueRef;
  readonly operand: number;
  /**
   * Ids of the nodes between the weight leaf and `weight`, in order: casts, transposes, reshapes. Empty if the node
   * reads the leaf directly.
   */
  readonly path: readonly number[];
  /** Result of the layer, before the bias is added in a linear layer or a convolution. */
  readonly output: ValueRef;
  /** Cotangent of `output`. */
  readonly outputGradient: ValueRef;
  /**
   * Reference to the bias, a differentiated leaf. In a norm, the bias is the shift; in other layers, the bias is added
   * to each row of `output`. Absent: the layer has no bias.
   */
  readonly bias?: ValueRef;
}

/** Layers that use one differentiated leaf as their weight or bias. */
export interface WeightLayers {
  /** Reference to the leaf, an argument of the differentiated function. */
  readonly weight: ValueRef;
  readonly uses: readonly LayerUse[];
  /** Ids of the nodes of the layers whose bias is this leaf. */
  readonly biasOf: readonly number[];
  /** Reasons, as texts, why some uses of the leaf are not layers; empty if all uses are layers. */
  readonly unresolved: readonly string[];
  /**
   * Number of leading dimensions of the leaf that index separate matrices in linear layers, such as 1 for expert
   * weights [experts, inputs, outputs]. 0 if no linear layer reads the leaf, or if the layers differ.
   */
  readonly stackDims: number;
}

/** Value that is computed from a weight leaf by reshapes, transposes, casts or broadcasts alone. */
interface WeightView {
  /** Index of the differentiated leaf. */
  readonly leaf: number;
  readonly ref: ValueRef;
  readonly path: readonly number[];
  readonly isBroadcast: boolean;
  /** Number of leading dimensions that are unchanged between the leaf and this value. */
  readonly leadingDims: number;
}

const nameOf = (node: Node): string => `${node.op}${node.scope === "" ? "" : ` in ${node.scope}`}`;

/**
 * Returns the number of leading dimensions of operand 0 that are unchanged in the result; Infinity if every element
 * keeps its position.
 */
const unchangedDims = (graph: Graph, { op, inputs, params, specs }: Node): number => {
  const { keepsOrder, stretches, leadingDimsKept } = operators[op] ?? {};
  if (leadingDimsKept !== undefined) return leadingDimsKept(params);
  if (stretches === true) return 0;
  if (keepsOrder !== true) return Infinity; // each element keeps its position, as in a cast
  const [before, after] = [specOf(graph, inputs[0]!).shape, specs[0]!.shape];
  const first = before.findIndex((size, dim) => size !== after[dim]);
  return first < 0 ? before.length : first;
};

/**
 * For each value, returns the nodes outside the backward pass that read the value, with the operand index of the value.
 */
const readersOf = (graph: Graph): ReadonlyMap<string, readonly (readonly [node: Node, operand: number])[]> => {
  const reads = graph.nodes
    .filter(({ phase }) => phase !== "backward")
    .flatMap((node) => node.inputs.map((_, operand) => [node, operand] as const));
  return Map.groupBy(reads, ([node, operand]) => valueKey(node.inputs[operand]!));
};

/**
 * Finds the layers of a traced step: for each differentiated weight, the nodes that apply it, their inputs, and the
 * gradients of their results. Used for curvature, second-order statistics and activation compression.
 *
 * The files of the operators define which operators are layers (`OperatorFacts.layer`). A weight may pass through
 * casts, transposes and reshapes, and may be applied several times: a tied embedding has two uses. Ambiguous cases are
 * reported in `unresolved`: a weight with other readers, or a result that was differentiated twice.
 *
 * @param traced Result of `trace`, before any pass. To compute with the returned values, append them to the outputs of
 * the graph and `replay` the graph.
 * @returns One entry per differentiated leaf, ordered by differentiation, then by leaf.
 * Cost: O(nodes + edges).
 */
export const layersOf = ({
  graph,
  derivatives,
}: {
  readonly graph: Graph;
  readonly derivatives: Derivatives;
}): WeightLayers[] => {
  const readers = readersOf(graph);
  const views = new Map<string, WeightView>();
  const readings: {
    readonly view: WeightView;
    readonly node: Node;
    readonly operand: number;
    readonly layer: LayerReading;
  }[] = [];
  const others: { readonly view: WeightView; readonly node: Node }[] = [];

  const follow = (view: WeightView): void => {
    views.set(valueKey(view.ref), view);
    for (const [node, operand] of readers.get(valueKey(view.ref)) ?? []) {
      const { layer, rearranges, stretches } = operators[node.op] ?? {};
      const own = layer?.(kernelNodeOf(graph, node)).find((one) => one.weight === operand);
      if (rearranges === true || stretches === true) {
        const output = node.specs.length === 1 ? 0 : operand;
        follow({
          ...view,
          ref: { node: node.id, output },
          path: [...view.path, node.id],
          isBroadcast: view.isBroadcast || stretches === true,
          leadingDims: Math.min(view.leadingDims, unchangedDims(graph, node)),
        });
      } else if (own !== undefined && !view.isBroadcast) readings.push({ view, node, operand, layer: own });
      else others.push({ view, node });
    }
  };
  derivatives.primals.forEach((ref, leaf) =>
    follow({ leaf, ref, path: [], isBroadcast: false, leadingDims: specOf(graph, ref).shape.length }),
  );

  const leafOf = (ref: ValueRef): number | undefined => views.get(valueKey(ref))?.leaf;
  /**
   * Finds the bias of a layer: returns the leaf that is added to each row of `output`, and the id of the node that adds
   * the leaf. Undefined if no leaf is added.
   */
  const addedBias = (output: ValueRef): { readonly leaf: number; readonly by: number } | undefined => {
    for (const [node, operand] of readers.get(valueKey(output)) ?? []) {
      const { adds, rearranges } = operators[node.op] ?? {};
      if (rearranges === true && node.specs.length === 1) {
        const further = addedBias({ node: node.id, output: 0 });
        if (further !== undefined) return further;
      }
      const leaf = adds === true ? leafOf(node.inputs[1 - operand]!) : undefined;
      if (leaf !== undefined && specOf(graph, derivatives.primals[leaf]!).shape.length === 1)
        return { leaf, by: node.id };
    }
    return undefined;
  };

  /**
   * Computes `stackDims`: a linear layer uses the last two dimensions of its weight; all earlier dimensions index
   * separate matrices.
   */
  const stackDimsOf = (own: readonly (typeof readings)[number][]): number => {
    const [first, ...others] = own.map(({ view, layer }) => {
      const dims = layer.kind === "linear" ? specOf(graph, view.ref).shape.length - 2 : 0;
      return dims <= view.leadingDims ? dims : 0;
    });
    return first !== undefined && others.every((dims) => dims === first) ? first : 0;
  };
  const found = derivatives.primals.map((weight, leaf) => ({
    weight,
    uses: [] as LayerUse[],
    biasOf: [] as number[],
    unresolved: [] as string[],
    stackDims: stackDimsOf(readings.filter(({ view }) => view.leaf === leaf)),
  }));
  const explained = new Set<string>();
  for (const { view, node, operand, layer } of readings) {
    const output = { node: node.id, output: 0 };
    const gradients = derivatives.cotangents.get(valueKey(output)) ?? [];
    if (gradients.length !== 1) {
      found[view.leaf]!.unresolved.push(
        gradients.length === 0
          ? `no gradient reaches the result of ${nameOf(node)}`
          : `the result of ${nameOf(node)} was differentiated ${gradients.length} times, so it has no one gradient`,
      );
      continue;
    }
    const added = layer.kind === "linear" || layer.kind === "convolution" ? addedBias(output) : undefined;
    const bias = layer.bias === undefined ? added?.leaf : leafOf(node.inputs[layer.bias]!);
    if (bias !== undefined) {
      found[bias]!.biasOf.push(node.id);
      explained.add(`${bias} ${added?.by ?? node.id}`);
    }
    found[view.leaf]!.uses.push({
      kind: layer.kind,
      node: node.id,
      params: node.params,
      input: node.inputs[layer.input]!,
      weight: view.ref,
      operand,
      path: view.path,
      output,
      outputGradient: gradients[0]!,
      ...(bias !== undefined && { bias: derivatives.primals[bias]! }),
    });
  }
  for (const { view, node } of others) {
    if (explained.has(`${view.leaf} ${node.id}`)) continue;
    found[view.leaf]!.unresolved.push(
      `${nameOf(node)} reads the leaf${view.isBroadcast ? ", broadcast" : ""}, and is not a linear layer, convolution, embedding or norm`,
    );
  }
  return found;
};
