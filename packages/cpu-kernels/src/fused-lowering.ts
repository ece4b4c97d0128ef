import { bytesPerElement, type DType, InvariantError, isFloat } from "@skein/tensor-core";
import {
  type ElementwiseName,
  type FusedInstruction,
  type KernelNode,
  type OperatorRows,
  roundToStorage,
} from "@skein/tensor-core/backend";
import type { Opcode } from "./fused-opcode.ts";

/** Appends one micro-operation, and returns the register of its result. */
export type Append = (op: Opcode, ...args: number[]) => number;

/** Micro-operation of one operator for each dtype of its operands. */
interface PerDtype {
  readonly f32: Opcode;
  readonly i32?: Opcode;
  readonly u32?: Opcode;
}

/** Appends the micro-operations of an instruction. Returns the register of the result. */
type Lower = (append: Append, instruction: FusedInstruction, args: readonly number[], from: DType) => number;

/**
 * Lowering of one operator: a micro-operation on bits, for any dtype; one micro-operation per dtype; or a function that
 * appends micro-operations.
 */
type Lowering = Opcode | PerDtype | Lower;

const opcodeOf = (names: PerDtype, dtype: DType): Opcode | undefined =>
  dtype === "f32" ? names.f32 : dtype === "u32" ? names.u32 : names.i32;

const lowerPerDtype: (names: PerDtype, args: (args: readonly number[], from: DType) => readonly number[]) => Lower =
  (names, order) =>
  (append, { op }, args, from) => {
    const opcode = opcodeOf(names, from);
    if (opcode === undefined) throw new InvariantError(`fused: no micro-operation computes ${op} on ${from}`);
    return append(opcode, ...order(args, from));
  };

/**
 * Lowers an operator whose result has the same bits as its operand: returns the register of the operand, and appends
 * nothing.
 */
const operand: Lower = (_, __, [x]) => x!;

const less: PerDtype = { f32: "less", i32: "lessI", u32: "lessU" };
const lessEqual: PerDtype = { f32: "lessEqual", i32: "lessEqualI", u32: "lessEqualU" };

/**
 * Lowers a comparison without swapping the operands. Bools are the exception: true is stored as -1, so the signed order
 * of bools is reversed, and the operands are swapped.
 */
const ascending = (names: PerDtype): Lower =>
  lowerPerDtype(names, (args, from) => (from === "bool" ? args.toReversed() : args));
/**
 * Lowers a comparison with swapped operands: `a > b` is `b < a`. The operands are not swapped if they are bools, whose
 * order is reversed.
 */
const descending = (names: PerDtype): Lower =>
  lowerPerDtype(names, (args, from) => (from === "bool" ? args : args.toReversed()));

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

/** Lowerings by operator name. An operator without a lowering is replaced by its composition before fusion. */
const lowerings: OperatorRows<ElementwiseName, Lowering> = {
  absolute: { f32: "abs", i32: "absI" },
  add: { f32: "add", i32: "addI", u32: "addI" },
  bitcast: operand,
  "bitwise-and": "and",
  "bitwise-or": "or",
  "bitwise-xor": "xor",
  cast: (append, { dtype }, [x], from) => lowerCast(append, x!, from, dtype),
  ceil: { f32: "ceil" },
  cos: { f32: "cos" },
  divide: { f32: "divide", i32: "divideI", u32: "divideU" },
  equal: { f32: "equal", i32: "equalI", u32: "equalI" },
  erf: { f32: "erf" },
  exp: { f32: "exp" },
  floor: { f32: "floor" },
  gelu: (append, { params }, [x]) => append(params["approximate"] ? "geluTanh" : "gelu", x!),
  greater: descending(less),
  "greater-equal": descending(lessEqual),
  "is-finite": { f32: "finite" },
  less: ascending(less),
  "less-equal": ascending(lessEqual),
  log: { f32: "log" },
  "logical-and": "and",
  "logical-not": "not",
  "logical-or": "or",
  "logical-xor": "xor",
  maximum: { f32: "maximum", i32: "maximumI", u32: "maximumU" },
  minimum: { f32: "minimum", i32: "minimumI", u32: "minimumU" },
  multiply: { f32: "multiply", i32: "multiplyI", u32: "multiplyI" },
  negate: { f32: "neg", i32: "negI", u32: "negI" },
  "not-equal": { f32: "notEqual", i32: "notEqualI", u32: "notEqualI" },
  power: { f32: "power" },
  relu: { f32: "relu" },
  round: { f32: "round" },
  rsqrt: { f32: "rsqrt" },
  "shift-left": "shiftLeft",
  "shift-right": { f32: "shiftRightI", i32: "shiftRightI", u32: "shiftRightU" },
  sigmoid: { f32: "sigmoid" },
  sign: { f32: "sign", i32: "signI" },
  silu: { f32: "silu" },
  sin: { f32: "sin" },
  softplus: { f32: "softplus" },
  sqrt: { f32: "sqrt" },
  "stop-gradient": operand,
  subtract: { f32: "subtract", i32: "subtractI", u32: "subtractI" },
  tanh: { f32: "tanh" },
  where: "select",
};

const loweringOf = (op: string): Lowering | undefined =>
  (lowerings as { readonly [op: string]: Lowering | undefined })[op];

/** Whether the kernel `fused` has an instruction for a node's operator and the dtype of its operands. */
export const hasInstruction = ({ op, inputs: [first] }: KernelNode): boolean => {
  const lowering = loweringOf(op);
  if (typeof lowering !== "object") return lowering !== undefined;
  return first !== undefined && opcodeOf(lowering, first.dtype) !== undefined;
};

/**
 * Appends the micro-operations of one elementwise operator.
 *
 * @param from Dtype of the first operand. `where` and bitwise operators do not depend on it.
 * @returns the register of the result, which may be the register of an operand.
 */
export const lowerInstruction: Lower = (append, instruction, args, from) => {
  const lowering = loweringOf(instruction.op);
  if (lowering === undefined)
    throw new InvariantError(`fused: no micro-operation computes ${instruction.op} on ${from}`);
  if (typeof lowering === "string") return append(lowering, ...args);
  const lower = typeof lowering === "object" ? lowerPerDtype(lowering, (own) => own) : lowering;
  return lower(append, instruction, args, from);
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
