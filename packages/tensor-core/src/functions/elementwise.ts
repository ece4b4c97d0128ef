import type { DType } from "../dtype.ts";
import { emitOne, requireOperands } from "../graph/emit.ts";
import { encodeNumber } from "../graph/graph.ts";
import { Tensor } from "../graph/tensor.ts";
import { describe, isSpec } from "../describe.ts";
import { ArgumentError } from "../errors.ts";
import { type NestedNumbers, readNested } from "../nested-numbers.ts";
import { checkOptions } from "../options.ts";
import {
  broadcastShapes,
  elementCount,
  formatShape,
  requireDType,
  requireNumberOf,
  requireShape,
  resolveDim,
  type Shape,
  sameShape,
  type TensorSpec,
} from "../shape.ts";

/** A tensor of `shape` with `value` everywhere. @throws ShapeError for a number that an integer dtype does not hold. */
export const full = (shape: Shape, value: number, dtype: DType = "f32"): Tensor => {
  requireShape("full", shape);
  if (typeof value !== "number") throw new ArgumentError(`full: its value is ${describe(value)}; give a number`);
  return emitOne("constant", [], { dtype, shape: [...shape], value: encodeNumber(value) });
};

/** A tensor of zeros. */
export const zeros = (shape: Shape, dtype: DType = "f32"): Tensor => full(shape, 0, dtype);

/** A tensor of ones. */
export const ones = (shape: Shape, dtype: DType = "f32"): Tensor => full(shape, 1, dtype);

/** A tensor of the shape and dtype of `like` with `value` everywhere. */
export const fullLike = (like: TensorSpec, value: number): Tensor => {
  if (!isSpec(like))
    throw new ArgumentError(`fullLike: ${describe(like)} has no dtype and shape to take over; give a Tensor`);
  return full(like.shape, value, like.dtype);
};

/** Zeros with the dtype and shape of another tensor. */
export const zerosLike = (like: TensorSpec): Tensor => fullLike(like, 0);

/** Ones with the dtype and shape of another tensor. */
export const onesLike = (like: TensorSpec): Tensor => fullLike(like, 1);

const literalBound = 4096;

/**
 * A tensor of known numbers, written into the graph: `constant(2)`, `constant([[1, 2], [3, 4]])`, or a flat list or
 * typed array with its shape.
 *
 * @throws ArgumentError for ragged lists and for more than 4096 values, which belong into an argument of the traced
 * function.
 */
export const constant = (
  values: NestedNumbers | ArrayLike<number>,
  dtype: DType = "f32",
  givenShape?: Shape,
): Tensor => {
  const { flat: numbers, shape: ownShape } = readNested("constant", values);
  const flat = Array.from(numbers);
  const shape = givenShape ?? ownShape;
  requireShape("constant", shape);
  if (flat.length !== elementCount(shape)) {
    throw new ArgumentError(
      `constant: ${flat.length} numbers do not fill shape ${formatShape(shape)}, which holds ${elementCount(shape)}; give as many numbers as the shape says`,
    );
  }
  if (flat.length > literalBound)
    throw new ArgumentError(
      `constant: ${flat.length} numbers are too many to write into a graph, the bound is ${literalBound}; pass them as an argument of the traced function`,
    );
  if (flat.length > 0 && flat.every((value) => Object.is(value, flat[0]))) return full(shape, flat[0]!, dtype);
  return emitOne("literal", [], { dtype, shape: [...shape], values: flat.map(encodeNumber) });
};

/** Which dimension a function works along. */
export interface DimOption {
  /** From 0, or from the end when negative. */
  readonly dim?: number;
}

/** Counts 0, 1, 2, … along `dim` (the last one by default), the same along all others. */
export const iota = (shape: Shape, dtype: DType = "i32", options: DimOption = {}): Tensor => {
  const { dim = -1 } = checkOptions("iota(shape, dtype)", options, { dim: true });
  requireShape("iota", shape);
  return emitOne("iota", [], { dtype, shape: [...shape], dim: resolveDim(dim, shape.length, "iota") });
};

/** `[0, 1, …, count - 1]` */
export const arange = (count: number, dtype: DType = "i32"): Tensor => iota([count], dtype);

/** A value that equals `x`; passes remove it. */
export const identity = (x: Tensor): Tensor => emitOne("identity", [x]);

type Operand = Tensor | number;

const stretch = (x: Tensor, shape: Shape): Tensor =>
  sameShape(x.shape, shape) ? x : emitOne("broadcast-to", [x], { shape: [...shape] });

/**
 * A number beside a tensor takes that tensor's shape and dtype.
 *
 * @throws ShapeError, in the name of the operator, where the dtype does not hold it.
 */
const fillLike = (op: string, value: number, { dtype, shape }: TensorSpec): Tensor => {
  requireNumberOf(op, value, dtype);
  return full(shape, value, dtype);
};

const binary = (op: string, a: Operand, b: Operand): Tensor => {
  requireOperands(op, [a, b], { numbers: true });
  if (typeof a === "number") {
    if (typeof b === "number") return emitOne(op, [full([], a), full([], b)]);
    return emitOne(op, [fillLike(op, a, b), b]);
  }
  if (typeof b === "number") return emitOne(op, [a, fillLike(op, b, a)]);
  const shape = broadcastShapes(a.shape, b.shape, op);
  return emitOne(op, [stretch(a, shape), stretch(b, shape)]);
};

/** `a + b`, stretched to a common shape. */
export const add = (a: Operand, b: Operand): Tensor => binary("add", a, b);

/** `a · b`, stretched to a common shape. */
export const multiply = (a: Operand, b: Operand): Tensor => binary("multiply", a, b);

/** `a - b`, stretched to a common shape. */
export const subtract = (a: Operand, b: Operand): Tensor => binary("subtract", a, b);

/** `a / b`, stretched to a common shape. Integers truncate toward zero; divided by 0 they give 0. */
export const divide = (a: Operand, b: Operand): Tensor => binary("divide", a, b);

/** `a^b`, stretched to a common shape. Constant exponents 0.5, 1, 2 and -1 become cheaper operators. */
export const power = (a: Operand, b: Operand): Tensor => {
  if (a instanceof Tensor) {
    if (b === 1) return a;
    if (b === 2) return square(a);
    if (b === 0.5) return sqrt(a);
    if (b === -1) return reciprocal(a);
  }
  return binary("power", a, b);
};

/** The greater of `a` and `b`, stretched to a common shape. NaN if either is NaN. */
export const maximum = (a: Operand, b: Operand): Tensor => binary("maximum", a, b);

/** The lesser of `a` and `b`, stretched to a common shape. NaN if either is NaN. */
export const minimum = (a: Operand, b: Operand): Tensor => binary("minimum", a, b);

/** `-x` */
export const negate = (x: Tensor): Tensor => emitOne("negate", [x]);

/** `|x|` */
export const absolute = (x: Tensor): Tensor => emitOne("absolute", [x]);

/** -1, 0 or 1 */
export const sign = (x: Tensor): Tensor => emitOne("sign", [x]);

/** `e^x` */
export const exp = (x: Tensor): Tensor => emitOne("exp", [x]);

/** Natural logarithm. */
export const log = (x: Tensor): Tensor => emitOne("log", [x]);

/** `√x` */
export const sqrt = (x: Tensor): Tensor => emitOne("sqrt", [x]);

/** `1 / √x` */
export const rsqrt = (x: Tensor): Tensor => emitOne("rsqrt", [x]);

/** Sine of radians. */
export const sin = (x: Tensor): Tensor => emitOne("sin", [x]);

/** Cosine of radians. */
export const cos = (x: Tensor): Tensor => emitOne("cos", [x]);

/** Hyperbolic tangent. */
export const tanh = (x: Tensor): Tensor => emitOne("tanh", [x]);

/** `1 / (1 + e^-x)` */
export const sigmoid = (x: Tensor): Tensor => emitOne("sigmoid", [x]);

/** Error function. */
export const erf = (x: Tensor): Tensor => emitOne("erf", [x]);

/** The greatest integer not above x. */
export const floor = (x: Tensor): Tensor => emitOne("floor", [x]);

/** The least integer not below x. */
export const ceil = (x: Tensor): Tensor => emitOne("ceil", [x]);

/** The nearest integer, ties to even. */
export const round = (x: Tensor): Tensor => emitOne("round", [x]);

/** Whether x is neither infinite nor NaN, as bool. */
export const isFinite = (x: Tensor): Tensor => emitOne("is-finite", [x]);

/** The value of `x` through which no gradient flows back. */
export const stopGradient = (x: Tensor): Tensor => emitOne("stop-gradient", [x]);

/** `x²` */
export const square = (x: Tensor): Tensor => multiply(x, x);

/** `1 / x` */
export const reciprocal = (x: Tensor): Tensor => divide(1, x);

/** `x` held between `low` and `high`; the gradient is 1 inside, ends included, and 0 outside. NaN stays NaN. */
export const clip = (x: Tensor, low: number, high: number): Tensor => {
  if (!(low <= high))
    throw new ArgumentError(
      `clip: nothing lies between ${describe(low)} and ${describe(high)}; give two numbers, the lower one first`,
    );
  return where(less(x, low), low, where(greater(x, high), high, x));
};

/** `a = b` as bool, stretched to a common shape. */
export const equal = (a: Operand, b: Operand): Tensor => binary("equal", a, b);

/** `a ≠ b` as bool, stretched to a common shape. */
export const notEqual = (a: Operand, b: Operand): Tensor => binary("not-equal", a, b);

/** `a < b` as bool, stretched to a common shape. */
export const less = (a: Operand, b: Operand): Tensor => binary("less", a, b);

/** `a ≤ b` as bool, stretched to a common shape. */
export const lessEqual = (a: Operand, b: Operand): Tensor => binary("less-equal", a, b);

/** `a > b` as bool, stretched to a common shape. */
export const greater = (a: Operand, b: Operand): Tensor => binary("greater", a, b);

/** `a ≥ b` as bool, stretched to a common shape. */
export const greaterEqual = (a: Operand, b: Operand): Tensor => binary("greater-equal", a, b);

/** Both of two bools, stretched to a common shape. */
export const logicalAnd = (a: Operand, b: Operand): Tensor => binary("logical-and", a, b);

/** Either of two bools, stretched to a common shape. */
export const logicalOr = (a: Operand, b: Operand): Tensor => binary("logical-or", a, b);

/** Exactly one of two bools, stretched to a common shape. */
export const logicalXor = (a: Operand, b: Operand): Tensor => binary("logical-xor", a, b);

/** The other bool. */
export const logicalNot = (x: Tensor): Tensor => emitOne("logical-not", [x]);

/** Bits set in both integers, stretched to a common shape. */
export const bitwiseAnd = (a: Operand, b: Operand): Tensor => binary("bitwise-and", a, b);

/** Bits set in either integer, stretched to a common shape. */
export const bitwiseOr = (a: Operand, b: Operand): Tensor => binary("bitwise-or", a, b);

/** Bits set in exactly one of the integers, stretched to a common shape. */
export const bitwiseXor = (a: Operand, b: Operand): Tensor => binary("bitwise-xor", a, b);

/** `a` with its bits moved up by `b` mod 32, stretched to a common shape. */
export const shiftLeft = (a: Operand, b: Operand): Tensor => binary("shift-left", a, b);

/** `a` with its bits moved down by `b` mod 32 (i32 keeps its sign), stretched to a common shape. */
export const shiftRight = (a: Operand, b: Operand): Tensor => binary("shift-right", a, b);

/**
 * `a` where the bool `condition` holds, else `b`; all three stretched to a common shape.
 *
 * No gradient flows to what was not chosen. But what was not chosen may itself come from a function whose derivative is
 * infinite there, and 0 · ∞ is NaN: choose what such a function reads, too.
 *
 * @example where(greater(x, 0), log(where(greater(x, 0), x, 1)), 0) // with log(x) the gradient at x = 0 would be NaN
 */
export const where = (condition: Tensor, a: Operand, b: Operand): Tensor => {
  requireOperands("where", [condition]);
  requireOperands("where", [condition, a, b], { numbers: true });
  const dtype = typeof a !== "number" ? a.dtype : typeof b !== "number" ? b.dtype : "f32";
  const shape = [a, b].reduce<Shape>(
    (common, operand) => (typeof operand === "number" ? common : broadcastShapes(common, operand.shape, "where")),
    condition.shape,
  );
  const fit = (operand: Operand): Tensor =>
    typeof operand === "number" ? fillLike("where", operand, { dtype, shape }) : stretch(operand, shape);
  return emitOne("where", [stretch(condition, shape), fit(a), fit(b)]);
};

/** The values of `x` in another dtype; see the `cast` operator for how they round. */
export const cast = (x: Tensor, dtype: DType): Tensor => {
  requireOperands("cast", [x]);
  requireDType("cast", dtype);
  return x.dtype === dtype ? x : emitOne("cast", [x], { dtype });
};

/**
 * The 32 bits of each element read as another dtype: f32, i32 or u32. Alone it moves nothing; beside other elementwise
 * operators it costs nothing.
 */
export const bitcast = (x: Tensor, dtype: DType): Tensor => {
  requireOperands("bitcast", [x]);
  requireDType("bitcast", dtype);
  return x.dtype === dtype ? x : emitOne("bitcast", [x], { dtype });
};
