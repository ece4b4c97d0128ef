import type { DType } from "@skein/tensor-core";
import type { Dim } from "../affine.ts";
import { typeCode } from "../proto.ts";
import type { ConstantType } from "../model-writer.ts";
import {
  chosen,
  type Emitter,
  knownNumbers,
  knownSize,
  requireConstantType,
  requireTypes,
  param,
  rejectNode,
  same,
} from "./emitter.ts";

/** Emits a constant whose elements are all equal: a stored scalar, expanded to the shape. */
const constant: Emitter = ({ node, writer }) => {
  const { dtype, shape } = node.specs[0]!;
  const value = Number(param<number | string>(node, "value"));
  if (shape.includes(0)) return writer.none(requireConstantType(node, dtype), shape);
  const one = writer.scalar(requireConstantType(node, dtype), value);
  return shape.length === 0 ? one : writer.node("Expand", [one, writer.sizes(shape)]);
};

const literal: Emitter = ({ node, writer }) => {
  const { dtype, shape } = node.specs[0]!;
  const values = param<readonly (number | string)[]>(node, "values").map(Number);
  return writer.numbers(requireConstantType(node, dtype), shape as readonly number[], values);
};

const iota: Emitter = ({ node, writer }) => {
  const { dtype, shape } = node.specs[0]!;
  if (shape.includes(0)) return writer.none(requireConstantType(node, dtype), shape);
  const dim = param<number>(node, "dim");
  const size = writer.node("Squeeze", [writer.sizes([shape[dim]!])]);
  const counted = writer.node("Cast", [writer.node("Range", [writer.int64(0), size, writer.int64(1)])], {
    to: typeCode(dtype),
  });
  const line = shape.map((_, other): Dim => (other === dim ? shape[dim]! : 1));
  const placed = writer.node("Reshape", [counted, writer.sizes(line)], { allowzero: 1 });
  return writer.node("Expand", [placed, writer.sizes(shape)]);
};

const slice: Emitter = ({ node, inputs, writer }) => {
  const [starts, ends] = [param<readonly Dim[]>(node, "starts"), param<readonly Dim[]>(node, "ends")];
  const strides = knownNumbers(node, "strides");
  const dims = strides.map((_, dim) => dim);
  if (dims.length === 0) return inputs;
  return writer.node("Slice", [inputs[0]!, ...[starts, ends, dims, strides].map((list) => writer.sizes(list))]);
};

/** Emits padding at the edges. Padding between elements has no equivalent in ONNX. */
const pad: Emitter = ({ node, inputs, specs, writer }) => {
  if (knownNumbers(node, "interior").some((size) => size !== 0))
    rejectNode(node, "it pads between elements; pad only at the edges");
  const { dtype } = specs[0]!;
  requireTypes(node, specs, ["f32", "i32", "u8", "bool"]);
  const value = writer.scalar(dtype as ConstantType, Number(param<number | string>(node, "value")));
  const pads = writer.sizes([...knownNumbers(node, "low"), ...knownNumbers(node, "high")]);
  return specs[0]!.shape.length === 0 ? inputs : writer.node("Pad", [inputs[0]!, pads, value], { mode: "constant" });
};

/**
 * Emits a gather. Indices out of range are errors in ONNX, but give NaN or zeros in Skein, so they are clamped and the
 * results are masked.
 */
const gather: Emitter = ({ node, inputs: [x, indices], specs, writer }) => {
  const dim = param<number>(node, "dim");
  const size = knownSize(node, specs[0]!, dim);
  const { dtype } = specs[0]!;
  requireTypes(node, [specs[0]!], ["f32", "i32", "u8", "bool"]);
  if (size === 0) rejectNode(node, "there are no rows to gather from");
  const inside = writer.node("Clip", [indices!, writer.scalar("i32", 0), writer.scalar("i32", size - 1)]);
  const rows = writer.node("Gather", [x!, inside], { axis: dim });
  const isInside = writer.node("Equal", [indices!, inside]);
  const [rank, width] = [specs[1]!.shape.length, specs[0]!.shape.length - dim - 1];
  const axes = Array.from({ length: width }, (_, i) => rank + i);
  const mask = axes.length === 0 ? isInside : writer.node("Unsqueeze", [isInside, writer.sizes(axes)]);
  const invalid = { f32: Number.NaN, i32: -(2 ** 31), u8: 255, bool: 1 }[dtype as "f32"];
  const outside = param<string>(node, "outside") === "zero" ? 0 : invalid;
  return chosen(writer, [mask, rows, writer.scalar(dtype as ConstantType, outside)], dtype);
};

const oneHot: Emitter = ({ node, inputs, specs, writer }) => {
  const dtype = param<DType>(node, "dtype");
  const depth = param<number>(node, "depth");
  const classes = writer.numbers(
    "i32",
    [depth],
    Array.from({ length: depth }, (_, i) => i),
  );
  const each = writer.node("Unsqueeze", [inputs[0]!, writer.sizes([specs[0]!.shape.length])]);
  return writer.node("Cast", [writer.node("Equal", [each, classes])], { to: typeCode(dtype) });
};

type MovementName =
  | "broadcast-to"
  | "concat"
  | "constant"
  | "gather"
  | "identity"
  | "iota"
  | "literal"
  | "one-hot"
  | "optimization-barrier"
  | "pad"
  | "reshape"
  | "slice"
  | "transpose";

/** Emitters of operators that move or create elements. */
export const movement: { readonly [op in MovementName]: Emitter } = {
  "broadcast-to": ({ node, inputs, writer }) => writer.node("Expand", [inputs[0]!, writer.sizes(node.specs[0]!.shape)]),
  concat: ({ node, inputs, writer }) => writer.node("Concat", inputs, { axis: param<number>(node, "dim") }),
  constant: constant,
  gather: gather,
  identity: same,
  iota: iota,
  literal: literal,
  "one-hot": oneHot,
  "optimization-barrier": same,
  pad: pad,
  reshape: ({ node, inputs, writer }) =>
    writer.node("Reshape", [inputs[0]!, writer.sizes(node.specs[0]!.shape)], { allowzero: 1 }),
  slice: slice,
  transpose: ({ node, inputs, writer }) => {
    const perm = knownNumbers(node, "permutation");
    return perm.length === 0 ? inputs : writer.node("Transpose", inputs, { perm });
  },
};
