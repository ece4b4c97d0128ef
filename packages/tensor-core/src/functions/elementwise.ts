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

/**
 * Creates a tensor of `shape` filled with `value`. @throws ShapeError if an integer dtype cannot represent `value`.
 *
 * @example
 * ```ts
 * const result = await evaluate(() => full([2], 7), referenceBackend())();
 * console.log(result.toNumbers()); // [7, 7]
 * ```
 */
export const full = (shape: Shape, value: number, dtype: DType = "f32"): Tensor => {
  requireShape("full", shape);
  if (typeof value !== "number") throw new ArgumentError(`full: its value is ${describe(value)}; pass a number`);
  return emitOne("constant", [], { dtype, shape: [...shape], value: encodeNumber(value) });
};

/** Creates a tensor of zeros. */
export const zeros = (shape: Shape, dtype: DType = "f32"): Tensor => full(shape, 0, dtype);

/** Creates a tensor of ones. */
export const ones = (shape: Shape, dtype: DType = "f32"): Tensor => full(shape, 1, dtype);

/** Creates a tensor with the shape and dtype of `like`, filled with `value`. */
export const fullLike = (like: TensorSpec, value: number): Tensor => {
  if (!isSpec(like)) throw new ArgumentError(`fullLike: ${describe(like)} has no dtype and shape; pass a Tensor`);
  return full(like.shape, value, like.dtype);
};

/** Creates a tensor of zeros with the dtype and shape of another tensor. */
export const zerosLike = (like: TensorSpec): Tensor => fullLike(like, 0);

/** Creates a tensor of ones with the dtype and shape of another tensor. */
export const onesLike = (like: TensorSpec): Tensor => fullLike(like, 1);

const literalBound = 4096;

/**
 * Creates a tensor whose values are embedded in the graph, from a number, nested lists (`constant([[1, 2], [3, 4]])`),
 * or a flat list or typed array with a shape.
 *
 * @throws ArgumentError if lists have different lengths, or there are more than 4096 values; pass larger tensors as
 * arguments of the traced function.
 * @example
 * ```ts
 * const result = await evaluate(() => constant([[1, 2], [3, 4]]), referenceBackend())();
 * console.log(result.shape); // [2, 2]
 * ```
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
      `constant: ${flat.length} numbers do not fill shape ${formatShape(shape)}, which holds ${elementCount(shape)}; pass as many numbers as the shape says`,
    );
  }
  if (flat.length > literalBound)
    throw new ArgumentError(
      `constant: ${flat.length} numbers are too many to embed in a graph, the limit is ${literalBound}; pass them as an argument of the traced function`,
    );
  if (flat.length > 0 && flat.every((value) => Object.is(value, flat[0]))) return full(shape, flat[0]!, dtype);
  return emitOne("literal", [], { dtype, shape: [...shape], values: flat.map(encodeNumber) });
};

/** Option with the dimension along which a function operates. */
export interface DimOption {
  /** Index of the dimension; negative indices count from the end. */
  readonly dim?: number;
}

/**
 * Creates a tensor with the indices 0, 1, 2, … along `dim` (default: the last dimension), repeated along all other
 * dimensions.
 *
 * @example
 * ```ts
 * const result = await evaluate(() => iota([2, 2]), referenceBackend())();
 * console.log(result.toNumbers()); // [0, 1, 0, 1]
 * ```
 */
export const iota = (shape: Shape, dtype: DType = "i32", options: DimOption = {}): Tensor => {
  const { dim = -1 } = checkOptions("iota(shape, dtype)", options, { dim: true });
  requireShape("iota", shape);
  return emitOne("iota", [], { dtype, shape: [...shape], dim: resolveDim(dim, shape.length, "iota") });
};

/**
 * Creates the vector `[0, 1, …, count - 1]`.
 *
 * @example
 * ```ts
 * const result = await evaluate(() => arange(4), referenceBackend())();
 * console.log(result.toNumbers()); // [0, 1, 2, 3]
 * ```
 */
export const arange = (count: number, dtype: DType = "i32"): Tensor => iota([count], dtype);

/** Returns `x` as the output of a new identity node. Graph passes later remove the node. */
export const identity = (x: Tensor): Tensor => emitOne("identity", [x]);

type Operand = Tensor | number;

const broadcast = (x: Tensor, shape: Shape): Tensor =>
  sameShape(x.shape, shape) ? x : emitOne("broadcast-to", [x], { shape: [...shape] });

/**
 * Creates the tensor for a number operand, with the shape and dtype of the other operand.
 *
 * @throws ShapeError, with the operator's name, if the dtype cannot represent the number.
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
  return emitOne(op, [broadcast(a, shape), broadcast(b, shape)]);
};

/** Elementwise `a + b`; operands are broadcast to a common shape. */
export const add = (a: Operand, b: Operand): Tensor => binary("add", a, b);

/** Elementwise `a · b`; operands are broadcast to a common shape. */
export const multiply = (a: Operand, b: Operand): Tensor => binary("multiply", a, b);

/** Elementwise `a - b`; operands are broadcast to a common shape. */
export const subtract = (a: Operand, b: Operand): Tensor => binary("subtract", a, b);

/**
 * Elementwise `a / b`; operands are broadcast to a common shape. Integer division truncates toward zero; integer
 * division by 0 gives 0.
 */
export const divide = (a: Operand, b: Operand): Tensor => binary("divide", a, b);

/**
 * Elementwise `a^b`; operands are broadcast to a common shape. Constant exponents 0.5, 1, 2 and -1 are replaced by
 * cheaper operators.
 */
export const power = (a: Operand, b: Operand): Tensor => {
  if (a instanceof Tensor) {
    if (b === 1) return a;
    if (b === 2) return square(a);
    if (b === 0.5) return sqrt(a);
    if (b === -1) return reciprocal(a);
  }
  return binary("power", a, b);
};

/** Maximum of `a` and `b`; operands are broadcast to a common shape. NaN if either operand is NaN. */
export const maximum = (a: Operand, b: Operand): Tensor => binary("maximum", a, b);

/** Minimum of `a` and `b`; operands are broadcast to a common shape. NaN if either operand is NaN. */
export const minimum = (a: Operand, b: Operand): Tensor => binary("minimum", a, b);

/** Negation, `-x`. */
export const negate = (x: Tensor): Tensor => emitOne("negate", [x]);

/** Absolute value, `|x|`. */
export const absolute = (x: Tensor): Tensor => emitOne("absolute", [x]);

/** Sign of x: -1, 0 or 1. */
export const sign = (x: Tensor): Tensor => emitOne("sign", [x]);

/** Exponential function, `e^x`. */
export const exp = (x: Tensor): Tensor => emitOne("exp", [x]);

/** Natural logarithm of x. */
export const log = (x: Tensor): Tensor => emitOne("log", [x]);

/** Square root, `√x`. */
export const sqrt = (x: Tensor): Tensor => emitOne("sqrt", [x]);

/** Reciprocal square root, `1 / √x`. */
export const rsqrt = (x: Tensor): Tensor => emitOne("rsqrt", [x]);

/** Sine of x in radians. */
export const sin = (x: Tensor): Tensor => emitOne("sin", [x]);

/** Cosine of x in radians. */
export const cos = (x: Tensor): Tensor => emitOne("cos", [x]);

/** Hyperbolic tangent of x. */
export const tanh = (x: Tensor): Tensor => emitOne("tanh", [x]);

/** Logistic sigmoid, `1 / (1 + e^-x)`. */
export const sigmoid = (x: Tensor): Tensor => emitOne("sigmoid", [x]);

/** Error function of x. */
export const erf = (x: Tensor): Tensor => emitOne("erf", [x]);

/** Largest integer not above x. */
export const floor = (x: Tensor): Tensor => emitOne("floor", [x]);

/** Smallest integer not below x. */
export const ceil = (x: Tensor): Tensor => emitOne("ceil", [x]);

/** Nearest integer to x, ties to even. */
export const round = (x: Tensor): Tensor => emitOne("round", [x]);

/** Whether x is neither infinite nor NaN, as bool. */
export const isFinite = (x: Tensor): Tensor => emitOne("is-finite", [x]);

/**
 * Returns `x`, but blocks the gradient.
 *
 * @example
 * ```ts
 * const result = await evaluate(stopGradient, referenceBackend())(NdArray.from([-1.5, 0, 2]));
 * console.log(result.toNumbers()); // [-1.5, 0, 2]
 * ```
 */
export const stopGradient = (x: Tensor): Tensor => emitOne("stop-gradient", [x]);

/** Square, `x²`. */
export const square = (x: Tensor): Tensor => multiply(x, x);

/** Reciprocal, `1 / x`. */
export const reciprocal = (x: Tensor): Tensor => divide(1, x);

/**
 * Clamps `x` to `low` … `high`. The gradient is 1 if low ≤ x ≤ high, otherwise 0. NaN stays NaN.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => clip(x, -1, 1);
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([-1.5, 0, 2]));
 * console.log(result.toNumbers()); // [-1, 0, 1]
 * ```
 */
export const clip = (x: Tensor, low: number, high: number): Tensor => {
  if (!(low <= high))
    throw new ArgumentError(
      `clip: no value is between ${describe(low)} and ${describe(high)}; pass two numbers, the lower one first`,
    );
  return where(less(x, low), low, where(greater(x, high), high, x));
};

/** Elementwise `a == b` as bool; operands are broadcast to a common shape. */
export const equal = (a: Operand, b: Operand): Tensor => binary("equal", a, b);

/** Elementwise `a ≠ b` as bool; operands are broadcast to a common shape. */
export const notEqual = (a: Operand, b: Operand): Tensor => binary("not-equal", a, b);

/** Elementwise `a < b` as bool; operands are broadcast to a common shape. */
export const less = (a: Operand, b: Operand): Tensor => binary("less", a, b);

/** Elementwise `a ≤ b` as bool; operands are broadcast to a common shape. */
export const lessEqual = (a: Operand, b: Operand): Tensor => binary("less-equal", a, b);

/** Elementwise `a > b` as bool; operands are broadcast to a common shape. */
export const greater = (a: Operand, b: Operand): Tensor => binary("greater", a, b);

/** Elementwise `a ≥ b` as bool; operands are broadcast to a common shape. */
export const greaterEqual = (a: Operand, b: Operand): Tensor => binary("greater-equal", a, b);

/** Logical AND of two bools; operands are broadcast to a common shape. */
export const logicalAnd = (a: Operand, b: Operand): Tensor => binary("logical-and", a, b);

/** Logical OR of two bools; operands are broadcast to a common shape. */
export const logicalOr = (a: Operand, b: Operand): Tensor => binary("logical-or", a, b);

/** Exclusive OR of two bools; operands are broadcast to a common shape. */
export const logicalXor = (a: Operand, b: Operand): Tensor => binary("logical-xor", a, b);

/** Logical NOT of a bool. */
export const logicalNot = (x: Tensor): Tensor => emitOne("logical-not", [x]);

/** Bitwise AND of integers; operands are broadcast to a common shape. */
export const bitwiseAnd = (a: Operand, b: Operand): Tensor => binary("bitwise-and", a, b);

/** Bitwise OR of integers; operands are broadcast to a common shape. */
export const bitwiseOr = (a: Operand, b: Operand): Tensor => binary("bitwise-or", a, b);

/** Bitwise exclusive OR of integers; operands are broadcast to a common shape. */
export const bitwiseXor = (a: Operand, b: Operand): Tensor => binary("bitwise-xor", a, b);

/** `a` shifted left by `b` mod 32 bits; operands are broadcast to a common shape. */
export const shiftLeft = (a: Operand, b: Operand): Tensor => binary("shift-left", a, b);

/** `a` shifted right by `b` mod 32 bits (i32 keeps its sign); operands are broadcast to a common shape. */
export const shiftRight = (a: Operand, b: Operand): Tensor => binary("shift-right", a, b);

/**
 * Selects `a` if the bool `condition` is true, otherwise `b`. All operands are broadcast to a common shape.
 *
 * No gradient flows to entries that are not selected. However, if an entry that is not selected was computed by a
 * function with an infinite derivative, the gradient of the function's operand is 0 · ∞ = NaN. To avoid this, also
 * apply `where` to the operand of the function.
 *
 * @example
 * ```ts
 * // With log(x) alone, the gradient at x = 0 would be NaN.
 * const safeLog = (x: Tensor) => where(greater(x, 0), log(where(greater(x, 0), x, 1)), 0);
 * console.log((await evaluate(safeLog, referenceBackend())(NdArray.from([0, 1]))).toNumbers()); // [0, 0]
 * ```
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
    typeof operand === "number" ? fillLike("where", operand, { dtype, shape }) : broadcast(operand, shape);
  return emitOne("where", [broadcast(condition, shape), fit(a), fit(b)]);
};

/**
 * Converts `x` to another dtype; see `castOperator` for the rounding.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => cast(x, "i32");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1.7, -1.7]));
 * console.log(result.toNumbers()); // [1, -1]
 * ```
 */
export const cast = (x: Tensor, dtype: DType): Tensor => {
  requireOperands("cast", [x]);
  requireDType("cast", dtype);
  return x.dtype === dtype ? x : emitOne("cast", [x], { dtype });
};

/**
 * Reinterprets the 32 bits of each element as another dtype: f32, i32 or u32. Does not copy: a separate `bitcast` is a
 * view, and a `bitcast` fused with other elementwise operators has no cost.
 *
 * @example
 * ```ts
 * const apply = (x: Tensor) => bitcast(x, "i32");
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1]));
 * console.log(result.toNumbers()); // [1065353216]
 * ```
 */
export const bitcast = (x: Tensor, dtype: DType): Tensor => {
  requireOperands("bitcast", [x]);
  requireDType("bitcast", dtype);
  return x.dtype === dtype ? x : emitOne("bitcast", [x], { dtype });
};
