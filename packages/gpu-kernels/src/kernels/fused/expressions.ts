import { type DType, InvariantError, isFloat } from "@skein/tensor-core";
import type { ElementwiseName, FusedInstruction, OperatorRows } from "@skein/tensor-core/backend";

// WGSL of single elementwise operators on vectors of four. A bool is a `vec4<bool>`, and a u8 is a `vec4<u32>`.

/** Returns the WGSL expression of an operator over registers. @param from Dtype of the first operand. */
type Expression = (args: readonly string[], instruction: FusedInstruction, from: DType) => string;

const infix =
  (sign: string): Expression =>
  ([a, b]) =>
    `(${a} ${sign} ${b})`;

const call =
  (name: string): Expression =>
  (args) =>
    `${name}(${args.join(", ")})`;

const operand: Expression = ([a]) => a!;

/** Returns an expression function that applies `onBools` if the first operand is bool, and `other` if not. */
const bools =
  (onBools: Expression, other: Expression): Expression =>
  (args, instruction, from) =>
    (from === "bool" ? onBools : other)(args, instruction, from);

/** Returns an expression function that applies `onFloats` if the first operand is f32, and `other` if not. */
const floats =
  (onFloats: Expression, other: Expression): Expression =>
  (args, instruction, from) =>
    (from === "f32" ? onFloats : other)(args, instruction, from);

const shift =
  (sign: string): Expression =>
  ([a, b]) =>
    `(${a} ${sign} (vec4<u32>(${b}) & vec4<u32>(31u)))`;

/**
 * Returns WGSL of a cast. Casts to f16 and bf16 are not rounded here; the shader of the program rounds them with
 * `encode_…` and `decode_…`.
 */
const castExpression = (x: string, from: DType, to: DType): string => {
  if (from === to) return x;
  if (isFloat(to)) return isFloat(from) ? x : `vec4<f32>(${x})`;
  if (isFloat(from)) return to === "bool" ? `!(${x} == vec4<f32>())` : `to_${to}(${x})`;
  if (to === "bool") return `(${x} != vec4<${from === "i32" ? "i32" : "u32"}>())`;
  if (to === "u8") return from === "bool" ? `vec4<u32>(${x})` : `(vec4<u32>(${x}) & vec4<u32>(255u))`;
  return `vec4<${to}>(${x})`;
};

/**
 * Expressions by operator name. An operator without an expression is replaced by its composition before fusion. False
 * is less than true.
 */
const expressions: OperatorRows<ElementwiseName, Expression> = {
  absolute: call("abs"),
  add: infix("+"),
  bitcast: ([a], { dtype }) => `bitcast<vec4<${dtype}>>(${a})`,
  "bitwise-and": infix("&"),
  "bitwise-or": infix("|"),
  "bitwise-xor": infix("^"),
  cast: ([a], { dtype }, from) => castExpression(a!, from, dtype),
  ceil: call("ceil"),
  cos: call("cos_of"),
  divide: ([a, b], _, from) => `divide_${from}(${a}, ${b})`,
  equal: infix("=="),
  erf: call("erf_of"),
  exp: call("exp_of"),
  floor: call("floor"),
  gelu: ([a], { params }) => (params["approximate"] === true ? `gelu_tanh_of(${a})` : `gelu_of(${a})`),
  greater: bools(([a, b]) => `(${a} & !${b})`, infix(">")),
  "greater-equal": bools(([a, b]) => `(${a} | !${b})`, infix(">=")),
  "is-finite": call("is_finite"),
  less: bools(([a, b]) => `(!${a} & ${b})`, infix("<")),
  "less-equal": bools(([a, b]) => `(!${a} | ${b})`, infix("<=")),
  log: call("log_of"),
  "logical-and": infix("&"),
  "logical-not": ([a]) => `!${a}`,
  "logical-or": infix("|"),
  "logical-xor": infix("!="),
  maximum: bools(infix("|"), floats(call("maximum"), call("max"))),
  minimum: bools(infix("&"), floats(call("minimum"), call("min"))),
  multiply: infix("*"),
  negate: ([a], _, from) => (from === "u32" ? `(~${a} + vec4<u32>(1u))` : `(-${a})`),
  "not-equal": floats(([a, b]) => `!(${a} == ${b})`, infix("!=")),
  power: call("power_of"),
  relu: ([a]) => `select(${a}, vec4<f32>(), ${a} < vec4<f32>())`,
  round: call("round"),
  rsqrt: call("inverseSqrt"),
  "shift-left": shift("<<"),
  "shift-right": shift(">>"),
  sigmoid: call("sigmoid_of"),
  sign: floats(call("sign_of"), call("sign")),
  silu: call("silu_of"),
  sin: call("sin_of"),
  softplus: call("softplus_of"),
  sqrt: call("sqrt_of"),
  "stop-gradient": operand,
  subtract: infix("-"),
  tanh: call("tanh_of"),
  where: ([a, b, c]) => `select(${c}, ${b}, ${a})`,
};

const expressionFor = (op: string): Expression | undefined =>
  (expressions as { readonly [op: string]: Expression | undefined })[op];

/** Whether the kernel `fused` has an instruction for an operator. */
export const hasInstruction = (op: string): boolean => expressionFor(op) !== undefined;

/** Returns the WGSL expression of an instruction over registers. @param from Dtypes of the operands. */
export const expressionOf = (
  instruction: FusedInstruction,
  args: readonly string[],
  [from]: readonly DType[],
): string => {
  const expression = expressionFor(instruction.op);
  if (expression === undefined) throw new InvariantError(`fused: no WGSL computes ${instruction.op} on ${from}`);
  return expression(args, instruction, from!);
};
