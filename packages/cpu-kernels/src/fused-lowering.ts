import { bytesPerElement, type DType, InvariantError, isFloat } from "@skein/tensor-core";
import { type FusedInstruction, roundToStorage } from "@skein/tensor-core/backend";
import type { Opcode } from "./fused-opcode.ts";

/** Appends one micro-operation, and returns the register of its result. */
export type Append = (op: Opcode, ...args: number[]) => number;

/** Names of the micro-operations of one operator, by dtype. */
interface Names {
  readonly f32: Opcode;
  readonly i32?: Opcode;
  readonly u32?: Opcode;
}

const named: { readonly [op: string]: Names } = {
  absolute: { f32: "abs", i32: "absI" },
  add: { f32: "add", i32: "addI", u32: "addI" },
  ceil: { f32: "ceil" },
  cos: { f32: "cos" },
  divide: { f32: "divide", i32: "divideI", u32: "divideU" },
  equal: { f32: "equal", i32: "equalI", u32: "equalI" },
  erf: { f32: "erf" },
  exp: { f32: "exp" },
  floor: { f32: "floor" },
  "is-finite": { f32: "finite" },
  less: { f32: "less", i32: "lessI", u32: "lessU" },
  "less-equal": { f32: "lessEqual", i32: "lessEqualI", u32: "lessEqualU" },
  log: { f32: "log" },
  maximum: { f32: "maximum", i32: "maximumI", u32: "maximumU" },
  minimum: { f32: "minimum", i32: "minimumI", u32: "minimumU" },
  multiply: { f32: "multiply", i32: "multiplyI", u32: "multiplyI" },
  negate: { f32: "neg", i32: "negI", u32: "negI" },
  "not-equal": { f32: "notEqual", i32: "notEqualI", u32: "notEqualI" },
  power: { f32: "power" },
  relu: { f32: "relu" },
  round: { f32: "round" },
  rsqrt: { f32: "rsqrt" },
  "shift-right": { f32: "shiftRightI", i32: "shiftRightI", u32: "shiftRightU" },
  sigmoid: { f32: "sigmoid" },
  sign: { f32: "sign", i32: "signI" },
  silu: { f32: "silu" },
  sin: { f32: "sin" },
  softplus: { f32: "softplus" },
  sqrt: { f32: "sqrt" },
  subtract: { f32: "subtract", i32: "subtractI", u32: "subtractI" },
  tanh: { f32: "tanh" },
};

/** Micro-operations that work on bits, for any dtype. */
const bitwise: { readonly [op: string]: Opcode } = {
  "bitwise-and": "and",
  "bitwise-or": "or",
  "bitwise-xor": "xor",
  "logical-and": "and",
  "logical-not": "not",
  "logical-or": "or",
  "logical-xor": "xor",
  "shift-left": "shiftLeft",
  where: "select",
};

/**
 * Operators that are lowered with swapped operands: `a > b` is `b < a`. A true bool is all ones, that is -1, so the
 * signed order of bools is reversed.
 */
const mirrored: { readonly [op: string]: string } = { greater: "less", "greater-equal": "less-equal" };

const lowerCast = (append: Append, x: number, from: DType, to: DType): number => {
  const round = (lane: number): number =>
    to === "f16" ? append("roundF16", lane) : to === "bf16" ? append("roundBf16", lane) : lane;
  if (isFloat(from)) {
    if (to === "i32") return append("toI32", x);
    if (to === "u32") return append("toU32", x);
    if (to === "u8") return append("toU8", x);
    return to === "bool" ? append("floatToBool", x) : to === from ? x : round(x);
  }
  if (from === "bool") return to === "bool" ? x : isFloat(to) ? append("boolToFloat", x) : append("boolToInt", x);
  if (isFloat(to)) return round(append(from === "u32" ? "fromU32" : "fromI32", x));
  if (to === "bool") return append("intToBool", x);
  return to === "u8" && from !== "u8" ? append("intToU8", x) : x;
};

/**
 * Appends the micro-operations of one elementwise operator.
 *
 * @param from Dtype of the first operand. `where` and bitwise operators do not depend on it.
 * @returns the register of the result, which may be the register of an operand.
 */
export const lowerInstruction = (
  append: Append,
  { op, dtype, params }: FusedInstruction,
  args: readonly number[],
  from: DType,
): number => {
  if (op === "cast") return lowerCast(append, args[0]!, from, dtype);
  if (op === "stop-gradient" || op === "identity" || op === "bitcast") return args[0]!;
  if (op === "gelu") return append(params["approximate"] ? "geluTanh" : "gelu", args[0]!);
  const bits = bitwise[op];
  if (bits !== undefined) return append(bits, ...args);
  const backwards = from === "bool" ? op === "less" || op === "less-equal" : op in mirrored;
  const name = named[mirrored[op] ?? op];
  const opcode = from === "f32" ? name?.f32 : from === "u32" ? name?.u32 : name?.i32;
  if (opcode === undefined) throw new InvariantError(`fused: no micro-operation computes ${op} on ${from}`);
  return append(opcode, ...(backwards ? args.toReversed() : args));
};

const scratch: DataView = new DataView(new ArrayBuffer(4));

/** Returns the 32 bits that a register holds for a value of a dtype. */
export const laneBits = (value: number, dtype: DType): number => {
  if (dtype === "bool") return value === 0 ? 0 : -1;
  const rounded = roundToStorage(value, dtype);
  if (!isFloat(dtype)) return rounded | 0;
  scratch.setFloat32(0, rounded);
  return scratch.getInt32(0);
};

/** Returns the storage format of a dtype, as a value of `Kind` in `assembly/fused-runs.ts`. */
export const kindOf = (dtype: DType): number =>
  bytesPerElement[dtype] === 4 ? 0 : dtype === "u8" ? 1 : dtype === "bool" ? 2 : dtype === "f16" ? 3 : 4;
