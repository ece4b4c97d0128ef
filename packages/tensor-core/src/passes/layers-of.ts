import type { Derivatives } from "../graph/emit.ts";
import { type Graph, type Node, type Params, specOf, type ValueRef, valueKey } from "../graph/graph.ts";
import { kernelNodeOf } from "../graph/kernel-node.ts";
import type { LayerKind, LayerReading } from "../graph/operator.ts";
import { operators } from "../ops/table.ts";

/** One application of a weight: `output = layer(input, weight)`. Values are those of the traced graph. */
export interface LayerUse {
  readonly kind: LayerKind;
  /** The node that applies it, and its parameters: transposes, strides, ε. */
  readonly node: number;
  readonly params: Params;
  /** What the layer reads: activations, images, for an embedding the numbers of its rows. */
  readonly input: ValueRef;
  /** The weight as the node reads it, its operand `operand`. */
  readonly weight: ValueRef;
  readonly operand: number;
  /** Nodes that bring the weight there, in order: casts, transposes, reshapes. Empty where it is read as it is. */
  readonly path: readonly number[];
  /** Without the bias of a linear layer or a convolution. */
  readonly output: ValueRef;
  /** The cotangent of `output`, which with or without a bias is the same. */
  readonly outputGradient: ValueRef;
  /** What was differentiated and is added to each row of the output, or shifts a norm: see `WeightLayers.weight`. */
  readonly bias?: ValueRef;
}

/** The layers of one leaf of what was differentiated. */
export interface WeightLayers {
  /** The leaf, as the differentiated function got it. */
  readonly weight: ValueRef;
  readonly uses: readonly LayerUse[];
  /** Nodes of the layers whose bias it is. */
  readonly biasOf: readonly number[];
  /** Why some of its uses are none of a layer, in words; empty where all are. */
  readonly unresolved: readonly string[];
  /**
   * Number of leading dimensions of the leaf that index separate matrices, in all linear layers that read it, such as 1
   * for weights of experts [experts, inputs, outputs]; 0 if the layers disagree or there is none.
   */
  readonly stackDims: number;
}

/** A value that is a weight in another shape, order, dtype, or repeated. */
interface Carried {
  /** Position among what was differentiated. */
  readonly leaf: number;
  readonly ref: ValueRef;
  readonly path: readonly number[];
  readonly isStretched: boolean;
  /** Number of leading dimensions of the leaf that are leading dimensions here. */
  readonly leadingDims: number;
}

const nameOf = (node: Node): string => `${node.op}${node.scope === "" ? "" : ` in ${node.scope}`}`;

/** Number of leading dimensions of an operand that are those of its result; Infinity if all are. */
const keptDims = (graph: Graph, { op, inputs, params, specs }: Node): number => {
  const { keepsOrder, stretches, leadingDimsKept } = operators[op] ?? {};
  if (leadingDimsKept !== undefined) return leadingDimsKept(params);
  if (stretches === true) return 0;
  if (keepsOrder !== true) return Infinity; // each element stays where it was
  const [before, after] = [specOf(graph, inputs[0]!).shape, specs[0]!.shape];
  const first = before.findIndex((size, dim) => size !== after[dim]);
  return first < 0 ? before.length : first;
};

/** Per value, the nodes that read it on the way to the loss. */
const readersOf = (graph: Graph): ReadonlyMap<string, readonly (readonly [node: Node, operand: number])[]> => {
  const reads = graph.nodes
    .filter(({ phase }) => phase !== "backward")
    .flatMap((node) => node.inputs.map((_, operand) => [node, operand] as const));
  return Map.groupBy(reads, ([node, operand]) => valueKey(node.inputs[operand]!));
};

/**
 * Find the layers of a traced step: for each weight that was differentiated, where it is applied, to what, and where
 * the gradient of the result is. Curvature, second-order statistics and activation compression need these.
 *
 * What is a layer stands in the operators' files (`OperatorFacts.layer`). A weight may come there through casts,
 * transposes and reshapes, and may be applied several times: a tied embedding has two uses. What cannot be told is
 * said, not guessed: a weight that is read by something else, a result that was differentiated twice.
 *
 * @param traced of `trace`, before any pass. To compute on what was found, append its values to the outputs of the
 * graph and `replay` it.
 * @returns an entry per leaf of what was differentiated, in the order of differentiation and of its leaves.
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
  const carried = new Map<string, Carried>();
  const readings: {
    readonly of: Carried;
    readonly node: Node;
    readonly operand: number;
    readonly layer: LayerReading;
  }[] = [];
  const others: { readonly of: Carried; readonly node: Node }[] = [];

  const follow = (of: Carried): void => {
    carried.set(valueKey(of.ref), of);
    for (const [node, operand] of readers.get(valueKey(of.ref)) ?? []) {
      const { layer, rearranges, stretches } = operators[node.op] ?? {};
      const own = layer?.(kernelNodeOf(graph, node)).find((one) => one.weight === operand);
      if (rearranges === true || stretches === true) {
        const output = node.specs.length === 1 ? 0 : operand;
        follow({
          ...of,
          ref: { node: node.id, output },
          path: [...of.path, node.id],
          isStretched: of.isStretched || stretches === true,
          leadingDims: Math.min(of.leadingDims, keptDims(graph, node)),
        });
      } else if (own !== undefined && !of.isStretched) readings.push({ of, node, operand, layer: own });
      else others.push({ of, node });
    }
  };
  derivatives.primals.forEach((ref, leaf) =>
    follow({ leaf, ref, path: [], isStretched: false, leadingDims: specOf(graph, ref).shape.length }),
  );

  const leafOf = (ref: ValueRef): number | undefined => carried.get(valueKey(ref))?.leaf;
  /** The leaf that is added to each row of a value, and the node that adds it. */
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

  /** A linear layer applies the last two dimensions of its weight; those before them count matrices. */
  const stackDimsOf = (own: readonly (typeof readings)[number][]): number => {
    const [first, ...others] = own.map(({ of, layer }) => {
      const dims = layer.kind === "linear" ? specOf(graph, of.ref).shape.length - 2 : 0;
      return dims <= of.leadingDims ? dims : 0;
    });
    return first !== undefined && others.every((dims) => dims === first) ? first : 0;
  };
  const found = derivatives.primals.map((weight, leaf) => ({
    weight,
    uses: [] as LayerUse[],
    biasOf: [] as number[],
    unresolved: [] as string[],
    stackDims: stackDimsOf(readings.filter(({ of }) => of.leaf === leaf)),
  }));
  const explained = new Set<string>();
  for (const { of, node, operand, layer } of readings) {
    const output = { node: node.id, output: 0 };
    const gradients = derivatives.cotangents.get(valueKey(output)) ?? [];
    if (gradients.length !== 1) {
      found[of.leaf]!.unresolved.push(
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
    found[of.leaf]!.uses.push({
      kind: layer.kind,
      node: node.id,
      params: node.params,
      input: node.inputs[layer.input]!,
      weight: of.ref,
      operand,
      path: of.path,
      output,
      outputGradient: gradients[0]!,
      ...(bias !== undefined && { bias: derivatives.primals[bias]! }),
    });
  }
  for (const { of, node } of others) {
    if (explained.has(`${of.leaf} ${node.id}`)) continue;
    found[of.leaf]!.unresolved.push(
      `${nameOf(node)} reads it${of.isStretched ? " stretched" : ""}, which is no linear layer, convolution, embedding or norm`,
    );
  }
  return found;
};
