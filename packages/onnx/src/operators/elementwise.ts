import type { DType } from "@skein/tensor-core";
import type { ElementwiseName, OperatorRows } from "@skein/tensor-core/backend";
import { chosen, type Emitter, noEquivalent, requireTypes, param, same } from "./emitter.ts";
import { typeCode } from "../proto.ts";

const numbers: readonly DType[] = ["f32", "i32"];
const floats: readonly DType[] = ["f32"];
const bools: readonly DType[] = ["bool"];

/** Returns an emitter of the ONNX operator `op`, which has the same behavior as Skein's operator for these dtypes. */
const named =
  (op: string, types: readonly DType[]): Emitter =>
  ({ node, inputs, specs, writer }) => {
    requireTypes(node, specs, types);
    return writer.node(op, inputs);
  };

const composed =
  (types: readonly DType[], compose: Emitter): Emitter =>
  (input) => {
    requireTypes(input.node, input.specs, types);
    return compose(input);
  };

/** Emits a maximum or minimum that propagates NaN from either operand, which ONNX does not guarantee. */
const extremum = (op: "Max" | "Min"): Emitter =>
  composed(numbers, ({ specs, inputs, writer }) => {
    const plain = writer.node(op, inputs);
    if (specs[0]!.dtype !== "f32") return plain;
    const isNaN = writer.node("Or", [writer.node("IsNaN", [inputs[0]!]), writer.node("IsNaN", [inputs[1]!])]);
    return writer.node("Where", [isNaN, writer.node("Add", inputs), plain]);
  });

/** Smallest and largest value of each integer type. */
const ranges = { i32: [-(2 ** 31), 2 ** 31 - 1], u32: [0, 2 ** 32 - 1], u8: [0, 255] } as const;

/**
 * Emits a cast. Casts of floats to integers saturate, and NaN becomes 0. ONNX does not specify the result in these
 * cases.
 */
const cast: Emitter = ({ node, specs, inputs, writer }) => {
  const to = param<DType>(node, "dtype");
  const from = specs[0]!.dtype;
  const isFloat = (dtype: DType): boolean => dtype === "f32" || dtype === "f16" || dtype === "bf16";
  if (from === to) return writer.node("Identity", inputs);
  if (!isFloat(from) || isFloat(to) || to === "bool") return writer.node("Cast", inputs, { to: typeCode(to) });
  const wide = from === "f32" ? inputs[0]! : writer.node("Cast", inputs, { to: typeCode("f32") });
  const finite = writer.node("Where", [writer.node("IsNaN", [wide]), writer.scalar("f32", 0), wide]);
  const [low, high] = ranges[to as keyof typeof ranges];
  // The bounds are powers of two (or 0), so they are exact as floats. The intermediate type i64 represents all bounds
  // exactly.
  const isAbove = writer.node("GreaterOrEqual", [finite, writer.scalar("f32", high + 1)]);
  const isBelow = writer.node("Less", [finite, writer.scalar("f32", low)]);
  const inside = writer.node("Cast", [finite], { to: typeCode("i64") });
  const clamped = writer.node("Where", [isBelow, writer.int64(low), inside]);
  return writer.node("Cast", [writer.node("Where", [isAbove, writer.int64(high), clamped])], { to: typeCode(to) });
};

/** Emits a division. The result of an integer division by 0 is 0. */
const divide: Emitter = composed(numbers, ({ specs, inputs: [a, b], writer }) => {
  if (specs[0]!.dtype === "f32") return writer.node("Div", [a!, b!]);
  const zero = writer.scalar("i32", 0);
  const isZero = writer.node("Equal", [b!, zero]);
  const divisor = writer.node("Where", [isZero, writer.scalar("i32", 1), b!]);
  return writer.node("Where", [isZero, zero, writer.node("Div", [a!, divisor])]);
});

const isFinite: Emitter = composed(floats, ({ inputs, writer }) =>
  writer.node("Not", [writer.node("Or", [writer.node("IsNaN", inputs), writer.node("IsInf", inputs)])]),
);

const gelu: Emitter = composed(floats, ({ node, inputs, writer }) =>
  writer.node("Gelu", inputs, { approximate: param<boolean>(node, "approximate") ? "tanh" : "none" }),
);

const compared = (op: string): Emitter => named(op, numbers);
const inverted = (op: string): Emitter =>
  composed(numbers, ({ inputs, writer }) => writer.node("Not", [writer.node(op, inputs)]));

/** Emitters of elementwise operators, or the reason why an operator is not exported. */
export const elementwise: OperatorRows<ElementwiseName, Emitter | string> = {
  absolute: named("Abs", numbers),
  add: named("Add", numbers),
  bitcast: noEquivalent,
  "bitwise-and": noEquivalent,
  "bitwise-or": noEquivalent,
  "bitwise-xor": noEquivalent,
  cast: cast,
  ceil: named("Ceil", floats),
  cos: named("Cos", floats),
  divide: divide,
  equal: compared("Equal"),
  erf: named("Erf", floats),
  exp: named("Exp", floats),
  floor: named("Floor", floats),
  gelu: gelu,
  greater: compared("Greater"),
  "greater-equal": compared("GreaterOrEqual"),
  "is-finite": isFinite,
  less: compared("Less"),
  "less-equal": compared("LessOrEqual"),
  log: named("Log", floats),
  "logical-and": named("And", bools),
  "logical-not": named("Not", bools),
  "logical-or": named("Or", bools),
  "logical-xor": named("Xor", bools),
  maximum: extremum("Max"),
  minimum: extremum("Min"),
  multiply: named("Mul", numbers),
  negate: named("Neg", numbers),
  "not-equal": inverted("Equal"),
  power: named("Pow", floats),
  relu: named("Relu", floats),
  round: named("Round", floats),
  rsqrt: composed(floats, ({ inputs, writer }) => writer.node("Reciprocal", [writer.node("Sqrt", inputs)])),
  "shift-left": noEquivalent,
  "shift-right": noEquivalent,
  sigmoid: named("Sigmoid", floats),
  sign: named("Sign", numbers),
  sin: named("Sin", floats),
  softplus: named("Softplus", floats),
  sqrt: named("Sqrt", floats),
  "stop-gradient": same,
  subtract: named("Sub", numbers),
  tanh: named("Tanh", floats),
  where: ({ inputs, specs, writer }) => chosen(writer, inputs as [string, string, string], specs[1]!.dtype),
};
