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
import { needConstant, refuseNode } from "./operators/emitter.ts";
import { emitters, unwritten } from "./operators/table.ts";
import { encodeModel, type OnnxGraph, type OnnxTensor, type OnnxValue, typeCode } from "./proto.ts";

/** What is written. */
export interface OnnxSource<Weights> {
  /** A traced function, such as the forward pass of a model: results by their names. */
  readonly fn: (weights: Weights, inputs: Readonly<Record<string, Tensor>>) => Readonly<Record<string, Tensor>>;
  /** A tree of arrays that become part of the model, under their paths. */
  readonly weights: MapTree<Weights, Tensor, NdArray>;
  /** Of one sample where `batch` is given, else of the whole. */
  readonly inputs: Readonly<Record<string, TensorSpec>>;
  /**
   * Samples of a run, in front of the shape of each input: `dynamic` for any number. Default: inputs are taken as they
   * are.
   */
  readonly batch?: number | "dynamic";
  /** Of the graph. Default: model. */
  readonly name?: string;
  /** Kept in the file, for people and programs. */
  readonly metadata?: Readonly<Record<string, string>>;
  /**
   * How f32 weights are stored: with `f16`, those of two and more dimensions in half the bytes, and made f32 again
   * before they are computed with; vectors, such as scales of norms, stay f32. Default: f32.
   */
  readonly weightType?: "f32" | "f16";
}

/** Above it protobuf allows no file; some room is for all that is no weight. */
const mostBytes = 2 ** 31 - 1 - 2 ** 24;

/** A model as files. */
export interface OnnxFiles {
  readonly model: Uint8Array;
  /** The bytes of the file of weights beside it, in pieces, in order. Empty where all are in the model. */
  readonly weights: readonly Uint8Array[];
}

/** How weights are laid out. */
export interface OnnxFilesOptions {
  /**
   * Name of the file of weights, in the folder of the model; no path. A function gets what the file will hold: a name
   * that follows from it, such as its digest, leaves a model that was there before with the weights that it had.
   */
  readonly weightsFile: string | ((weights: readonly Uint8Array[]) => string);
  /** More bytes of weights go into that file. Default: what a model's own file can hold, about 2 GiB. */
  readonly above?: number;
}

/**
 * The same as `exportOnnx`, of any size: where weights are too many for one file, they lie in another beside it.
 *
 * @throws OnnxError as `exportOnnx`, and for a name that leads out of the folder.
 */
export const exportOnnxFiles = <Weights>(
  source: OnnxSource<Weights>,
  { weightsFile, above = mostBytes }: OnnxFilesOptions,
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
  throw new OnnxError(`weightsFile is ${JSON.stringify(name)}, but must be the name of a file, without folders`);
};

/** A graph, and what is kept with it. */
interface Built {
  readonly graph: OnnxGraph;
  readonly metadata: Readonly<Record<string, string>>;
}

const bytesOf = ({ initialisers }: OnnxGraph): number =>
  [...initialisers.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);

const encode = ({ graph, metadata }: Built): Uint8Array =>
  encodeModel(graph, { name: "skein", version: packageJson.version }, metadata);

/** Weights as f16. @throws OnnxError for numbers that f16 does not hold. */
const halved = (path: string, { shape, data }: NdArray): OnnxTensor => {
  const bits = new Uint16Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const value = data[i] as number;
    bits[i] = toF16Bits(value);
    if ((bits[i]! & 0x7fff) === 0x7c00 && Number.isFinite(value))
      throw new OnnxError(
        `${path} holds ${value}, but f16 ends at 65504; leave weightType out, so that weights stay f32`,
      );
  }
  return { type: "f16", dims: shape, bytes: new Uint8Array(bits.buffer) };
};

/**
 * Write a traced function as an ONNX model: opset 20, f32 and whole numbers as they are. Weights keep the paths of
 * their tree as names, nodes the scope of the model's part.
 *
 * With `batch: "dynamic"` the function is traced at three sizes, and what differs must follow from the size by a
 * multiple and a sum.
 *
 * @throws OnnxError for operators without a form in ONNX (collectives, random numbers, mixtures of experts), for
 * weights that f16 does not hold, and for models above 2 GiB, which `exportOnnxFiles` writes.
 * @example const bytes = exportOnnx({ fn: ({ params, state }, { image }) => ({ logits: model.apply(params, state,
 * image!, { train: false })[0] }), weights: { params, state }, inputs: { image: { dtype: "u8", shape: [28, 28, 1] } },
 * batch: "dynamic" });
 */
export const exportOnnx = <Weights>(source: OnnxSource<Weights>): Uint8Array => {
  const built = build(source);
  const total = bytesOf(built.graph);
  if (total > mostBytes)
    throw new OnnxError(
      `weights take ${total} bytes, but an ONNX file holds ${mostBytes} at most; write them into a file beside it by exportOnnxFiles`,
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
    return eliminateDeadCode(expandCompositions(graph, () => true));
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
  if (clash !== undefined) throw new OnnxError(`the input ${clash} has the name of a weight; give it another one`);

  const { inputs: argumentIds, outputs } = graphs[0]!;
  const argumentAt = new Map(argumentIds.map((id, index) => [id, index]));
  const constants = foldConstants(graphs[0]!, nodes);
  const missing = nodes.filter(
    ({ id, op }) => !argumentAt.has(id) && !constants.has(valueKey({ node: id, output: 0 })) && !emitters.has(op),
  );
  // Before anything else is refused: what has no form at all has no cure by other sizes.
  const reported = missing.find(({ op }) => unwritten.has(op)) ?? missing[0];
  if (reported !== undefined)
    refuseNode(reported, unwritten.get(reported.op) ?? "no operators of ONNX do it; leave it out of what is exported");
  const constantOf = (ref: ValueRef): string | undefined => {
    const array = constants.get(valueKey(ref));
    if (array === undefined) return undefined;
    const { spec, data } = array;
    writer.startNode(`constant_${ref.node}.${ref.output}`);
    const name = writer.numbers(needConstant(nodes[ref.node]!, spec.dtype), spec.shape, Array.from(data));
    values.set(valueKey(ref), name);
    return name;
  };
  const valueOf = (ref: ValueRef): string =>
    values.get(valueKey(ref)) ??
    constantOf(ref) ??
    refuseNode(nodes[ref.node]!, `its result ${ref.output} is there in ours alone; use the first one`);
  for (const node of nodes) {
    const index = argumentAt.get(node.id);
    if (index !== undefined) {
      const own = argumentNames[index]!;
      const array = arrays[index];
      let value = own;
      if (array === undefined) entries.push({ name: own, type: node.specs[0]!.dtype, shape: node.specs[0]!.shape });
      else if (weightType === "f16" && array.dtype === "f32" && array.shape.length > 1) {
        writer.initialisers.set(own, halved(own, array));
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
      refuseNode(node, "runtimes do not compute with bf16; cast to f32 before");
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
