import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { DType } from "@skein/tensor-core";
import type { Dim } from "./affine.ts";
import { dimName, isKnown } from "./affine.ts";

// The messages of onnx.proto that this file writes, with their field numbers. Source:
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

/** Element type of an ONNX tensor. */
export type OnnxType = DType | "i64";

const typeCodes: Readonly<Record<OnnxType, number>> = {
  f32: 1,
  u8: 2,
  i32: 6,
  i64: 7,
  bool: 9,
  f16: 10,
  u32: 12,
  bf16: 16,
};

export const typeCode = (type: OnnxType): number => typeCodes[type];

/** A constant tensor of a model. */
export interface OnnxTensor {
  readonly type: OnnxType;
  readonly dims: readonly number[];
  /** Elements in little-endian order. */
  readonly bytes: Uint8Array;
  /**
   * Location of the elements outside the model: a file in the model's folder, and the byte offset of the first element.
   * Absent: the elements are in the model.
   */
  readonly external?: { readonly location: string; readonly offset: number };
}

/** Value of a node attribute. Floats are wrapped in `float` to distinguish them from integers. */
export type Attribute =
  | number
  | string
  | readonly number[]
  | { readonly float: number }
  | { readonly tensor: OnnxTensor };

export interface OnnxNode {
  readonly op: string;
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

/** Name and type of an input or output of a model. */
export interface OnnxValue {
  readonly name: string;
  readonly type: OnnxType;
  readonly shape: readonly Dim[];
}

export interface OnnxGraph {
  readonly name: string;
  readonly nodes: readonly OnnxNode[];
  readonly initialisers: ReadonlyMap<string, OnnxTensor>;
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
}

const string = (writer: BinaryWriter, field: number, value: string): BinaryWriter =>
  writer.tag(field, WireType.LengthDelimited).string(value);
const whole = (writer: BinaryWriter, field: number, value: number): BinaryWriter =>
  writer.tag(field, WireType.Varint).int64(value);

/** Writes a nested protobuf message to a field. */
const message = (writer: BinaryWriter, field: number, fill: (inner: BinaryWriter) => void): BinaryWriter => {
  writer.tag(field, WireType.LengthDelimited).fork();
  fill(writer);
  return writer.join();
};

/** Value of `TensorProto.DataLocation.EXTERNAL`. */
const external = 1;

const writeEntry = (writer: BinaryWriter, field: number, key: string, value: string): BinaryWriter =>
  message(writer, field, (entry) => string(string(entry, 1, key), 2, value));

const writeTensor = (writer: BinaryWriter, tensor: OnnxTensor, name?: string): void => {
  const { type, dims, bytes, external: source } = tensor;
  for (const dim of dims) whole(writer, 1, dim);
  whole(writer, 2, typeCode(type));
  if (name !== undefined) string(writer, 8, name);
  if (source === undefined) writer.tag(9, WireType.LengthDelimited).bytes(bytes);
  else {
    writeEntry(writer, 13, "location", source.location);
    writeEntry(writer, 13, "offset", String(source.offset));
    writeEntry(writer, 13, "length", String(bytes.length));
    whole(writer, 14, external);
  }
};

const attributeTypes = { float: 1, int: 2, string: 3, tensor: 4, ints: 7 } as const;

const writeAttribute = (writer: BinaryWriter, name: string, value: Attribute): void => {
  string(writer, 1, name);
  if (typeof value === "number") whole(whole(writer, 3, value), 20, attributeTypes.int);
  else if (typeof value === "string")
    whole(writer.tag(4, WireType.LengthDelimited).bytes(new TextEncoder().encode(value)), 20, attributeTypes.string);
  else if ("float" in value) whole(writer.tag(2, WireType.Bit32).float(value.float), 20, attributeTypes.float);
  else if ("tensor" in value)
    whole(
      message(writer, 5, (inner) => writeTensor(inner, value.tensor)),
      20,
      attributeTypes.tensor,
    );
  else {
    for (const item of value) whole(writer, 8, item);
    whole(writer, 20, attributeTypes.ints);
  }
};

const writeNode = (writer: BinaryWriter, { op, name, inputs, outputs, attributes }: OnnxNode): void => {
  for (const input of inputs) string(writer, 1, input);
  for (const output of outputs) string(writer, 2, output);
  string(string(writer, 3, name), 4, op);
  for (const [key, value] of Object.entries(attributes))
    message(writer, 5, (inner) => writeAttribute(inner, key, value));
};

const writeValue = (writer: BinaryWriter, { name, type, shape }: OnnxValue): void => {
  string(writer, 1, name);
  message(writer, 2, (ofType) =>
    message(ofType, 1, (tensor) => {
      whole(tensor, 1, typeCode(type));
      message(tensor, 2, (dims) => {
        for (const dim of shape)
          message(dims, 1, (inner) => {
            if (isKnown(dim)) whole(inner, 1, dim);
            else string(inner, 2, dimName(dim));
          });
      });
    }),
  );
};

/** Version of the ONNX file format: the newest version that runtimes of 2024 and later support. */
const irVersion = 9;
/** Version of the standard operator set. */
export const opset = 20;

/** Encodes a model as the bytes of its file. @param metadata Metadata to store in the file, by key. */
export const encodeModel = (
  graph: OnnxGraph,
  producer: { readonly name: string; readonly version: string },
  metadata: Readonly<Record<string, string>>,
): Uint8Array => {
  const writer = new BinaryWriter();
  whole(writer, 1, irVersion);
  string(string(writer, 2, producer.name), 3, producer.version);
  message(writer, 7, (inner) => {
    for (const node of graph.nodes) message(inner, 1, (each) => writeNode(each, node));
    string(inner, 2, graph.name);
    for (const [name, tensor] of graph.initialisers) message(inner, 5, (each) => writeTensor(each, tensor, name));
    for (const value of graph.inputs) message(inner, 11, (each) => writeValue(each, value));
    for (const value of graph.outputs) message(inner, 12, (each) => writeValue(each, value));
  });
  message(writer, 8, (inner) => whole(string(inner, 1, ""), 2, opset));
  for (const [key, value] of Object.entries(metadata)) writeEntry(writer, 14, key, value);
  return writer.finish();
};
