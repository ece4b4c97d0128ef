import {
  flattenTree,
  leafPaths,
  type MapTree,
  type NdArray,
  type Tensor,
  type TensorSpec,
  trace,
} from "@skein/tensor-core";
import { eliminateDeadCode, expandCompositions, toF16Bits, valueKey, type ValueRef } from "@skein/tensor-core/backend";
import packageJson from "../package.json" with { type: "json" };
import { probes } from "./affine.ts";
import { OnnxError } from "./errors.ts";
import { withExternalData } from "./external-data.ts";
import { foldConstants } from "./fold-constants.ts";
import { mergeTraces } from "./merge-traces.ts";
import { ModelWriter } from "./model-writer.ts";
import { noEquivalent, requireConstantType, rejectNode } from "./operators/emitter.ts";
import { emitters, reasonOf } from "./operators/table.ts";
import { encodeModel, type OnnxGraph, type OnnxTensor, type OnnxValue, typeCode } from "./proto.ts";

/** A function to export, with its weights and inputs. */
export interface OnnxSource<Weights> {
  /** Function to trace, such as the forward pass of a model. Returns results by name. */
  readonly fn: (weights: Weights, inputs: Readonly<Record<string, Tensor>>) => Readonly<Record<string, Tensor>>;
  /** Tree of arrays that become part of the model. Each array is named by its path in the tree. */
  readonly weights: MapTree<Weights, Tensor, NdArray>;
  /**
   * Specs of the inputs, by name. Shapes are per sample if `batch` is given, and include all dimensions if `batch` is
   * absent.
   */
  readonly inputs: Readonly<Record<string, TensorSpec>>;
  /**
   * Batch size, prepended to the shape of each input. `dynamic`: any batch size. Absent: the shapes of the inputs are
   * used as given.
   */
  readonly batch?: number | "dynamic";
  /** Name of the graph in the file. Default: model. */
  readonly name?: string;
  /** Metadata to store in the file, by key. */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * Storage type of f32 weights. `f16`: weights with two or more dimensions are stored as f16 in half the bytes, and
   * cast to f32 before computation. Scalars and vectors, such as normalization gains, stay f32. Default: f32.
   */
  readonly weightType?: "f32" | "f16";
}

/** Maximum total size of weights in one file, in bytes: protobuf's limit minus room for the rest of the model. */
const maxBytes = 2 ** 31 - 1 - 2 ** 24;

/** A model as contents of files. */
export interface OnnxFiles {
  readonly model: Uint8Array;
  /** Content of the separate weights file, as consecutive byte arrays. Empty: all weights are in the model. */
  readonly weights: readonly Uint8Array[];
}

/** Options for the files of a model. */
export interface OnnxFilesOptions {
  /**
   * Name of the weights file in the model's folder, without a path, or a function that returns the name for the given
   * content. A name derived from the content, such as a digest, prevents the file from replacing the weights of another
   * model.
   */
  readonly weightsFile: string | ((weights: readonly Uint8Array[]) => string);
  /**
   * Total size of the weights in bytes above which they are written to the separate file. Default: the maximum size in
   * the model's file, about 2 GiB.
   */
  readonly above?: number;
}

/**
 * Exports a model like `exportOnnx`, but with weights of any size. Weights that do not fit into the model's file are
 * returned as the content of a separate file.
 *
 * @throws OnnxError under the conditions of `exportOnnx`, except the size limit, and if the name of the weights file is
 * not a plain file name.
 * @example
 * ```ts
 * const source = {
 *   fn: ({ w }: { w: Tensor }, { x }: { readonly [name: string]: Tensor }) => ({ y: matmul(x!, w) }),
 *   weights: { w: NdArray.from([1, 2], [2, 1]) } as never,
 *   inputs: { x: { dtype: "f32", shape: [2] } },
 *   batch: 1,
 * } as const;
 * console.log(Object.keys(exportOnnxFiles(source, { weightsFile: "model.data", above: 0 }))); // ['model', 'weights']
 * ```
 */
export const exportOnnxFiles = <Weights>(
  source: OnnxSource<Weights>,
  { weightsFile, above = maxBytes }: OnnxFilesOptions,
): OnnxFiles => {
  if (typeof weightsFile === "string") requireName(weightsFile);
  const built = build(source);
  if (bytesOf(built.graph) <= above) return { model: encode(built), weights: [] };
  const { initialisers, pieces } = withExternalData(built.graph.initialisers, (weights) =>
    requireName(typeof weightsFile === "string" ? weightsFile : weightsFile(weights)),
  );
  return { model: encode({ ...built, graph: { ...built.graph, initialisers } }), weights: pieces };
};

const requireName = (name: string): string => {
  if (/^[^/\\\0]+$/.test(name) && name !== "." && name !== "..") return name;
  throw new OnnxError(`weightsFile is ${JSON.stringify(name)}, but must be a file name without folders`);
};

/** A converted graph and its metadata. */
interface Built {
  readonly graph: OnnxGraph;
  readonly metadata: Readonly<Record<string, string>>;
}

const bytesOf = ({ initialisers }: OnnxGraph): number =>
  [...initialisers.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);

const encode = ({ graph, metadata }: Built): Uint8Array =>
  encodeModel(graph, { name: "skein", version: packageJson.version }, metadata);

/**
 * Converts the data of a weight to f16.
 * @throws OnnxError if a value is beyond the range of f16.
 */
const toF16Tensor = (path: string, { shape, data }: NdArray): OnnxTensor => {
  const bits = new Uint16Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const value = data[i] as number;
    bits[i] = toF16Bits(value);
    if ((bits[i]! & 0x7fff) === 0x7c00 && Number.isFinite(value))
      throw new OnnxError(
        `${path} holds ${value}, but the maximum of f16 is 65504; omit weightType, so that weights stay f32`,
      );
  }
  return { type: "f16", dims: shape, bytes: new Uint8Array(bits.buffer) };
};

/**
 * Exports a traced function as an ONNX model with opset 20. f32 and integer values keep their types. Weights are named
 * by their paths in the tree, and nodes by the scopes of their model parts.
 *
 * With `batch: "dynamic"` the function is traced at three batch sizes, and every number that differs must be an affine
 * function of the batch size.
 *
 * Operators without an emitter, including user-defined operators, are exported as their composition.
 *
 * @throws OnnxError if an operator has no ONNX equivalent (collectives, random numbers, mixtures of experts), if a
 * weight is beyond the range of f16, or if the model exceeds 2 GiB and so needs `exportOnnxFiles`.
 * @example const bytes = exportOnnx({ fn: ({ params, state }, { image }) => ({ logits: model.apply(params, state,
 * image!, { train: false })[0] }), weights: { params, state }, inputs: { image: { dtype: "u8", shape: [28, 28, 1] } },
 * batch: "dynamic" });
 */
export const exportOnnx = <Weights>(source: OnnxSource<Weights>): Uint8Array => {
  const built = build(source);
  const total = bytesOf(built.graph);
  if (total > maxBytes)
    throw new OnnxError(
      `weights have ${total} bytes, but an ONNX file holds at most ${maxBytes}; write the weights to a separate file with exportOnnxFiles`,
    );
  return encode(built);
};

const build = <Weights>(source: OnnxSource<Weights>): Built => {
  const { fn, weights, inputs, batch, name = "model", metadata = {}, weightType = "f32" } = source;
  let outputNames: readonly string[] = [];
  const traceAt = (size: number | undefined) => {
    const specs = Object.fromEntries(
      Object.entries(inputs).map(([key, { dtype, shape }]) => [
        key,
        { dtype, shape: size === undefined ? shape : [size, ...shape] },
      ]),
    );
    const { graph } = trace(
      (given: Weights, samples: Readonly<Record<string, Tensor>>) => {
        const results = fn(given, samples);
        outputNames = Object.keys(results);
        return outputNames.map((key) => results[key]!);
      },
      [weights, specs] as never,
    );
    return eliminateDeadCode(expandCompositions(graph, ({ name }) => emitters.has(name)));
  };
  const graphs = batch === "dynamic" ? probes.map(traceAt) : [traceAt(batch)];
  const nodes = mergeTraces(graphs);

  const weightPaths = leafPaths(weights);
  const arrays = flattenTree<NdArray>(weights).leaves;
  const inputNames = leafPaths(inputs);
  const writer = new ModelWriter(inputNames[0]);
  const values = new Map<string, string>();
  const entries: OnnxValue[] = [];
  const argumentNames = [...weightPaths, ...inputNames];
  const clash = inputNames.find((key) => weightPaths.includes(key));
  if (clash !== undefined) throw new OnnxError(`the input ${clash} has the name of a weight; rename the input`);

  const { inputs: argumentIds, outputs } = graphs[0]!;
  const argumentAt = new Map(argumentIds.map((id, index) => [id, index]));
  const constants = foldConstants(graphs[0]!, nodes);
  const missing = nodes.filter(
    ({ id, op }) => !argumentAt.has(id) && !constants.has(valueKey({ node: id, output: 0 })) && !emitters.has(op),
  );
  // This error is reported before other errors, because no other size makes an operator without an ONNX equivalent
  // exportable.
  const reported = missing.find(({ op }) => reasonOf(op) !== noEquivalent) ?? missing[0];
  if (reported !== undefined) rejectNode(reported, reasonOf(reported.op));
  const constantOf = (ref: ValueRef): string | undefined => {
    const array = constants.get(valueKey(ref));
    if (array === undefined) return undefined;
    const { spec, data } = array;
    writer.startNode(`constant_${ref.node}.${ref.output}`);
    const name = writer.numbers(requireConstantType(nodes[ref.node]!, spec.dtype), spec.shape, Array.from(data));
    values.set(valueKey(ref), name);
    return name;
  };
  const valueOf = (ref: ValueRef): string =>
    values.get(valueKey(ref)) ??
    constantOf(ref) ??
    rejectNode(nodes[ref.node]!, `its result ${ref.output} does not exist in ONNX; use the first result`);
  for (const node of nodes) {
    const index = argumentAt.get(node.id);
    if (index !== undefined) {
      const own = argumentNames[index]!;
      const array = arrays[index];
      let value = own;
      if (array === undefined) entries.push({ name: own, type: node.specs[0]!.dtype, shape: node.specs[0]!.shape });
      else if (weightType === "f16" && array.dtype === "f32" && array.shape.length > 1) {
        writer.initialisers.set(own, toF16Tensor(own, array));
        writer.startNode(own);
        value = writer.node("Cast", [own], { to: typeCode("f32") });
      } else writer.initialisers.set(own, { type: array.dtype, dims: array.shape, bytes: array.bytes() });
      values.set(valueKey({ node: node.id, output: 0 }), value);
      continue;
    }
    if (constants.has(valueKey({ node: node.id, output: 0 }))) continue;
    const operands = node.inputs.map(valueOf);
    const emit = emitters.get(node.op)!;
    if (node.op !== "cast" && node.specs.some(({ dtype }) => dtype === "bf16"))
      rejectNode(node, "runtimes do not compute in bf16; cast to f32 first");
    writer.startNode(`${node.scope === "" ? "" : `${node.scope}/`}${node.op}_${node.id}`);
    const results = emit({
      node,
      writer,
      inputs: operands,
      specs: node.inputs.map((ref) => nodes[ref.node]!.specs[ref.output]!),
    });
    (typeof results === "string" ? [results] : results).forEach((value, output) => {
      if (value !== undefined) values.set(valueKey({ node: node.id, output }), value);
    });
  }
  writer.startNode("outputs");
  const results = outputs.map((ref, index): OnnxValue => {
    const own = outputNames[index]!;
    const { dtype, shape } = nodes[ref.node]!.specs[ref.output]!;
    writer.nodes.push({ op: "Identity", name: own, inputs: [valueOf(ref)], outputs: [own], attributes: {} });
    return { name: own, type: dtype, shape };
  });
  return {
    graph: { name, nodes: writer.nodes, initialisers: writer.initialisers, inputs: entries, outputs: results },
    metadata,
  };
};
