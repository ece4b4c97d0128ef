import { typeCode } from "../proto.ts";
import { attention } from "./attention.ts";
import type { ModelWriter } from "../model-writer.ts";
import {
  type Emitter,
  knownNumbers,
  knownSize,
  requireConstantType,
  requireTypes,
  param,
  rejectNode,
} from "./emitter.ts";

const toI32 = (writer: ModelWriter, name: string): string => writer.node("Cast", [name], { to: typeCode("i32") });

/**
 * Emits a sum. Integer sums wrap around in Skein but saturate in runtimes, so they are computed in i64 and truncated.
 */
const sum: Emitter = ({ node, inputs, specs, writer }) => {
  requireTypes(node, specs, ["f32", "i32"]);
  const dims = writer.sizes(knownNumbers(node, "dims"));
  if (specs[0]!.dtype === "f32") return writer.node("ReduceSum", [inputs[0]!, dims], { keepdims: 0 });
  const wide = writer.node("Cast", inputs, { to: typeCode("i64") });
  const total = writer.node("ReduceSum", [wide, dims], { keepdims: 0 });
  return toI32(writer, total);
};

/**
 * Returns an emitter of a maximum or minimum over dimensions. The emitted nodes propagate NaN, while the ONNX operators
 * of runtimes ignore NaN.
 */
const extremum =
  (op: "ReduceMax" | "ReduceMin"): Emitter =>
  ({ node, inputs, specs, writer }) => {
    requireTypes(node, specs, ["f32", "i32"]);
    const dims = writer.sizes(knownNumbers(node, "dims"));
    const plain = writer.node(op, [inputs[0]!, dims], { keepdims: 0 });
    const isEmpty = knownNumbers(node, "dims").some((dim) => specs[0]!.shape[dim] === 0);
    if (specs[0]!.dtype !== "f32" || isEmpty) return plain;
    return writer.node("Where", [hasNaN(writer, inputs[0]!, dims), writer.scalar("f32", Number.NaN), plain]);
  };

/** Emits a reduction over `dims`. The result is true if any of the reduced values is NaN. */
const hasNaN = (writer: ModelWriter, name: string, dims: string): string => {
  const flags = toI32(writer, writer.node("IsNaN", [name]));
  return writer.node("Cast", [writer.node("ReduceMax", [flags, dims], { keepdims: 0 })], { to: typeCode("bool") });
};

/**
 * Returns an emitter of an argmax or argmin. If a value is NaN, the result is the index of the first NaN, which ONNX
 * does not guarantee.
 */
const argReduction =
  (op: "ArgMax" | "ArgMin"): Emitter =>
  ({ node, inputs, specs, writer }) => {
    requireTypes(node, specs, ["f32", "i32"]);
    const setting = { axis: param<number>(node, "dim"), keepdims: 0, select_last_index: 0 };
    const plain = writer.node(op, inputs, setting);
    if (specs[0]!.dtype !== "f32") return toI32(writer, plain);
    const isNaN = toI32(writer, writer.node("IsNaN", inputs));
    const firstNaN = writer.node("ArgMax", [isNaN], setting);
    const hasAny = hasNaN(writer, inputs[0]!, writer.sizes([setting.axis]));
    return toI32(writer, writer.node("Where", [hasAny, firstNaN, plain]));
  };

const cumsum: Emitter = ({ node, inputs, specs, writer }) => {
  requireTypes(node, specs, ["f32", "i32"]);
  if (specs[0]!.shape.includes(0)) return inputs; // onnxruntime crashes on empty inputs
  const axis = writer.scalar("i32", param<number>(node, "dim"));
  return writer.node("CumSum", [inputs[0]!, axis], { exclusive: 0, reverse: param<boolean>(node, "reverse") ? 1 : 0 });
};

const alongRows =
  (op: string): Emitter =>
  ({ node, inputs, specs, writer }) => {
    requireTypes(node, specs, ["f32"]);
    return writer.node(op, inputs, { axis: -1 });
  };

const layerNorm: Emitter = ({ node, inputs, specs, writer }) => {
  requireTypes(node, specs, ["f32"]);
  const epsilon = { float: param<number>(node, "epsilon") };
  return [writer.node("LayerNormalization", inputs, { axis: -1, epsilon }), undefined, undefined];
};

const rmsNorm: Emitter = ({ node, inputs: [x, gain], specs, writer }) => {
  requireTypes(node, specs, ["f32"]);
  const squares = writer.node("Mul", [x!, x!]);
  const mean = writer.node("ReduceMean", [squares, writer.sizes([-1])], { keepdims: 1 });
  const shifted = writer.node("Add", [mean, writer.scalar("f32", param<number>(node, "epsilon"))]);
  const inverse = writer.node("Reciprocal", [writer.node("Sqrt", [shifted])]);
  const scaled = writer.node("Mul", [writer.node("Mul", [x!, inverse]), gain!]);
  return [scaled, undefined];
};

/** Emits a rotary embedding. Cosines and sines are constants, computed in f64 as in the reference backend. */
const rotary: Emitter = ({ node, inputs: [x], specs, writer }) => {
  const [positions, width] = [knownSize(node, specs[0]!, -2), knownSize(node, specs[0]!, -1)];
  const [base, offset, sign] = ["base", "offset", "sign"].map((key) => param<number>(node, key)) as [
    number,
    number,
    number,
  ];
  const half = width / 2;
  const angles = Array.from(
    { length: positions * half },
    (_, i) => sign * (Math.floor(i / half) + offset) * base ** ((-2 * (i % half)) / width),
  );
  const [cosines, sines] = [Math.cos, Math.sin].map((of) => writer.numbers("f32", [positions, half], angles.map(of)));
  const part = (from: number, to: number): string =>
    writer.node("Slice", [x!, writer.sizes([from]), writer.sizes([to]), writer.sizes([-1])]);
  const [first, second] = [part(0, half), part(half, width)];
  const times = (a: string, b: string): string => writer.node("Mul", [a, b]);
  const rotated = [
    writer.node("Sub", [times(first, cosines!), times(second, sines!)]),
    writer.node("Add", [times(second, cosines!), times(first, sines!)]),
  ];
  return writer.node("Concat", rotated, { axis: -1 });
};

/** Emits a top-k. Among equal values the lower index comes first, as in onnxruntime. */
const topK: Emitter = ({ node, inputs, specs, writer }) => {
  requireTypes(node, specs, ["f32", "i32"]);
  if (param<string>(node, "by") === "magnitude") rejectNode(node, "it selects by magnitude; select by value");
  const { dtype, shape } = node.specs[0]!;
  // onnxruntime crashes on empty inputs
  if (shape.includes(0)) return [writer.none(requireConstantType(node, dtype), shape), writer.none("i32", shape)];
  const k = writer.sizes([param<number>(node, "k")]);
  const [values, indices] = writer.outputs("TopK", [inputs[0]!, k], 2, { axis: -1, largest: 1, sorted: 1 });
  if (param<boolean>(node, "sorted")) return [values, toI32(writer, indices!)];
  const [ascending] = writer.outputs("TopK", [indices!, k], 2, { axis: -1, largest: 0, sorted: 1 });
  return [writer.node("GatherElements", [inputs[0]!, ascending!], { axis: -1 }), toI32(writer, ascending!)];
};

type RowName =
  | "argmax"
  | "argmin"
  | "attention"
  | "cumsum"
  | "layer-norm"
  | "log-softmax"
  | "reduce-max"
  | "reduce-min"
  | "rms-norm"
  | "rotary"
  | "softmax"
  | "sum"
  | "top-k";

/** Emitters of operators that work along dimensions. */
export const rows: { readonly [op in RowName]: Emitter } = {
  argmax: argReduction("ArgMax"),
  argmin: argReduction("ArgMin"),
  attention: attention,
  cumsum: cumsum,
  "layer-norm": layerNorm,
  "log-softmax": alongRows("LogSoftmax"),
  "reduce-max": extremum("ReduceMax"),
  "reduce-min": extremum("ReduceMin"),
  "rms-norm": rmsNorm,
  rotary: rotary,
  softmax: alongRows("Softmax"),
  sum: sum,
  "top-k": topK,
};
