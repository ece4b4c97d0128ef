import { ArgumentError, elementCount, reshape, swapDims, type Tensor, type TensorSpec, vjp } from "@skein/tensor-core";
import { emitOne, type LayerUse, layersOf, type Params, specOf } from "@skein/tensor-core/backend";
import { leafPaths, type Traced } from "@skein/tensor-core";

/** A node between a weight and the layer that reads it, such as a transpose. */
interface Rearrangement {
  readonly op: string;
  readonly params: Params;
}

/**
 * A layer with computable curvature: a linear map from rows of `numInputs` numbers to rows of `numOutputs` numbers.
 * Plain data, equal in all traces of a model.
 */
export interface Layer {
  /** Path of the layer's weight in the tree of parameters. */
  readonly path: string;
  /**
   * Path of the bias, which is treated as an additional input that is always 1. Absent: the layer has no bias, or
   * shares its bias with other layers.
   */
  readonly bias?: string;
  readonly kind: "linear" | "convolution" | "embedding";
  /** Number of inputs, including the input of the bias. */
  readonly numInputs: number;
  readonly numOutputs: number;
  /** Height and width of a convolution's kernel. */
  readonly kernel?: readonly [number, number];
  /** Operations that transform the stored weight to the operand of the layer. */
  readonly rearrangements: readonly Rearrangement[];
  /** Whether the operand is [outputs, inputs]. */
  readonly isTransposed: boolean;
}

/** A weight that no layer with computable curvature contains, so that its gradient is not preconditioned. */
export interface FirstOrderWeight {
  readonly path: string;
  /** Reason why the gradient of this weight is not preconditioned. */
  readonly why: string;
}

/** Layers of a model, and weights that belong to no layer. */
export interface ModelLayers {
  readonly layers: readonly Layer[];
  /** Path of the weight that is applied last, whether or not it belongs to a layer. Undefined: there is no weight. */
  readonly head: string | undefined;
  readonly firstOrder: readonly FirstOrderWeight[];
  /**
   * Number of leading dimensions that index separate matrices, by parameter path: 1 for expert weights [experts,
   * inputs, outputs]. Parameters without such dimensions are not listed.
   */
  readonly stacks: ReadonlyMap<string, number>;
  /** Scopes of the nodes that apply a weight, by path of the weight. */
  readonly scopes: ReadonlyMap<string, readonly string[]>;
}

/** A layer, and the operations of one trace that use the layer. */
export interface AppliedLayer {
  readonly layer: Layer;
  readonly uses: readonly LayerUse[];
}

const transposes = ({ operand, params, kind }: LayerUse): boolean =>
  kind === "linear" && (operand === 1 ? params["transposeB"] === true : params["transposeA"] !== true);

const rearrangementsOf = ({ graph }: Traced, { path }: LayerUse): Rearrangement[] =>
  path
    .map((id) => graph.nodes[id]!)
    .filter(({ op }) => op !== "cast")
    .map(({ op, params }) => ({ op, params }));

/** Returns the reason why a weight's uses do not form one layer. Undefined: the uses form a layer. */
const reasonAgainst = (
  traced: Traced,
  uses: readonly LayerUse[],
  unresolved: readonly string[],
): string | undefined => {
  if (unresolved.length > 0) return unresolved[0];
  const [first] = uses;
  if (first === undefined) return "it is not the weight of a layer";
  if (first.kind === "norm") return "it is the gain of a norm";
  const kinds = [...new Set(uses.map(({ kind }) => kind))];
  if (kinds.length > 1)
    return `it is used as the weight of ${kinds.join(" and of ")} layers, whose inputs and outputs are swapped`;
  if (new Set(uses.map(transposes)).size > 1) return "it is used both as stored and transposed";
  const rank = specOf(traced.graph, first.weight).shape.length;
  if (first.kind === "convolution") {
    return first.params["groups"] === 1 ? undefined : `it is a convolution of ${String(first.params["groups"])} groups`;
  }
  return rank === 2 ? undefined : `it is a stack of matrices, of ${rank} dimensions`;
};

/**
 * Returns the leaf index of the bias that all uses of a weight share, and that no other weight uses. Undefined: there
 * is no such bias.
 */
const ownBias = (uses: readonly LayerUse[], layers: ReturnType<typeof layersOf>): number | undefined => {
  const nodes = new Set(uses.map(({ node }) => node));
  const leaf = layers.findIndex(({ biasOf }) => biasOf.some((node) => nodes.has(node)));
  if (leaf < 0) return undefined;
  const { biasOf, unresolved, uses: others } = layers[leaf]!;
  const isShared = biasOf.length !== nodes.size || !biasOf.every((node) => nodes.has(node));
  return isShared || unresolved.length > 0 || others.length > 0 ? undefined : leaf;
};

/**
 * Finds the layers of a traced step. The step must differentiate once with respect to `params`.
 *
 * A weight with several uses of one kind is one layer with the rows of all uses. `firstOrder` lists weights that belong
 * to no layer, and weights with incompatible uses, such as an embedding that is also the head.
 *
 * @throws ArgumentError if the step differentiates with respect to other tensors than `params`.
 */
export const appliedLayers = (
  traced: Traced,
  params: unknown,
): { readonly applied: readonly AppliedLayer[] } & Omit<ModelLayers, "layers"> => {
  const paths = leafPaths(params);
  const found = layersOf(traced);
  if (found.length !== paths.length)
    throw new ArgumentError(
      `layers: ${found.length} tensors were differentiated, but the parameters have ${paths.length}; differentiate the loss once, with respect to the parameters`,
    );
  const biases = new Set<number>();
  const applied = found.flatMap(({ uses, unresolved }, leaf): AppliedLayer[] => {
    if (reasonAgainst(traced, uses, unresolved) !== undefined) return [];
    const [first] = uses as [LayerUse];
    const { shape } = specOf(traced.graph, first.weight);
    const bias = first.kind === "embedding" ? undefined : ownBias(uses, found);
    if (bias !== undefined) biases.add(bias);
    const isTransposed = transposes(first);
    const outputs = first.kind === "linear" && isTransposed ? shape[0]! : shape.at(-1)!;
    const layer: Layer = {
      path: paths[leaf]!,
      ...(bias !== undefined && { bias: paths[bias]! }),
      kind: first.kind as Layer["kind"],
      numInputs: elementCount(shape) / outputs + (bias === undefined ? 0 : 1),
      numOutputs: outputs,
      ...(first.kind === "convolution" && { kernel: [shape[0]!, shape[1]!] as const }),
      rearrangements: rearrangementsOf(traced, first),
      isTransposed,
    };
    return [{ layer, uses }];
  });
  const covered = new Set(applied.map(({ layer }) => layer.path));
  const firstOrder = found.flatMap(({ uses, unresolved }, leaf): FirstOrderWeight[] => {
    if (covered.has(paths[leaf]!) || biases.has(leaf)) return [];
    return [{ path: paths[leaf]!, why: reasonAgainst(traced, uses, unresolved)! }];
  });
  const last = found
    .flatMap(({ uses }, leaf) => uses.map(({ node, kind }) => ({ leaf, node, kind })))
    .filter(({ kind }) => kind !== "norm")
    .toSorted((a, b) => b.node - a.node)[0];
  return {
    applied,
    firstOrder,
    head: last && paths[last.leaf],
    stacks: new Map(found.flatMap(({ stackDims }, leaf) => (stackDims > 0 ? [[paths[leaf]!, stackDims]] : []))),
    scopes: new Map(
      found.map(({ uses }, leaf) => [paths[leaf]!, uses.map(({ node }) => traced.graph.nodes[node]!.scope)]),
    ),
  };
};

/** Returns a layer's gradient as a matrix [inputs, outputs], without the row of the bias. */
const asMatrix = ({ rearrangements, isTransposed, numOutputs }: Layer, weight: Tensor): Tensor => {
  const read = rearrangements.reduce((x, { op, params }) => emitOne(op, [x], params), weight);
  if (isTransposed) return swapDims(read, -1, -2);
  return read.rank === 2 ? read : reshape(read, [-1, numOutputs]);
};

/** Leaves of a tree by path. */
export type LeafMap<Leaf = Tensor> = ReadonlyMap<string, Leaf>;

/** Gradient of a layer's weight, [inputs, outputs], and of its bias, [outputs]. */
export interface LayerGradient {
  readonly weight: Tensor;
  readonly bias?: Tensor;
}

/** Extracts a layer's gradient from a tree of gradients. */
export const layerGradient = (layer: Layer, gradients: LeafMap): LayerGradient => ({
  weight: asMatrix(layer, gradients.get(layer.path)!),
  ...(layer.bias !== undefined && { bias: gradients.get(layer.bias)! }),
});

/** Stores a layer's gradient in a map of gradients, in the shape and layout of the parameters. */
export const storeLayerGradient = (layer: Layer, gradient: LayerGradient, into: Map<string, Tensor>): void => {
  const stored = into.get(layer.path)! as Tensor & TensorSpec;
  // The pullback of a rearrangement is its inverse.
  const { pullback } = vjp((weight: Tensor) => asMatrix(layer, weight), stored);
  into.set(layer.path, pullback(gradient.weight));
  if (layer.bias !== undefined) into.set(layer.bias, gradient.bias!);
};
