import { type DType, InvariantError, isFloat } from "@skein/tensor-core";
import type { FusedInstruction } from "@skein/tensor-core/backend";

// WGSL of single elementwise operators on vectors of four. A bool is a `vec4<bool>`, and a u8 is a `vec4<u32>`.

const infix: { readonly [op: string]: string } = {
  add: "+",
  subtract: "-",
  multiply: "*",
  equal: "==",
  less: "<",
  "less-equal": "<=",
  greater: ">",
  "greater-equal": ">=",
  "bitwise-and": "&",
  "bitwise-or": "|",
  "bitwise-xor": "^",
};

const calls: { readonly [op: string]: string } = {
  absolute: "abs",
  ceil: "ceil",
  cos: "cos_of",
  erf: "erf_of",
  exp: "exp_of",
  floor: "floor",
  "is-finite": "is_finite",
  log: "log_of",
  power: "power_of",
  round: "round",
  rsqrt: "inverseSqrt",
  sigmoid: "sigmoid_of",
  silu: "silu_of",
  sin: "sin_of",
  softplus: "softplus_of",
  sqrt: "sqrt_of",
  tanh: "tanh_of",
};

/** WGSL of operators on bools. false is less than true. */
const boolExpressions: { readonly [op: string]: (a: string, b: string) => string } = {
  equal: (a, b) => `(${a} == ${b})`,
  "not-equal": (a, b) => `(${a} != ${b})`,
  less: (a, b) => `(!${a} & ${b})`,
  "less-equal": (a, b) => `(!${a} | ${b})`,
  greater: (a, b) => `(${a} & !${b})`,
  "greater-equal": (a, b) => `(${a} | !${b})`,
  maximum: (a, b) => `(${a} | ${b})`,
  minimum: (a, b) => `(${a} & ${b})`,
  "logical-and": (a, b) => `(${a} & ${b})`,
  "logical-or": (a, b) => `(${a} | ${b})`,
  "logical-xor": (a, b) => `(${a} != ${b})`,
  "logical-not": (a) => `!${a}`,
};

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
 * Returns the WGSL expression of an instruction over registers.
 *
 * @param from Dtypes of the operands.
 */
export const expressionOf = (
  { op, dtype, params }: FusedInstruction,
  args: readonly string[],
  from: readonly DType[],
): string => {
  const [a, b, c] = args as [string, string, string];
  const type = from[0]!;
  if (type === "bool" && op in boolExpressions) return boolExpressions[op]!(a, b);
  if (op in infix) return `(${a} ${infix[op]} ${b})`;
  if (op in calls) return `${calls[op]}(${args.join(", ")})`;
  switch (op) {
    case "identity":
    case "stop-gradient":
      return a;
    case "bitcast":
      return `bitcast<vec4<${dtype}>>(${a})`;
    case "cast":
      return castExpression(a, type, dtype);
    case "where":
      return `select(${c}, ${b}, ${a})`;
    case "not-equal":
      return type === "f32" ? `!(${a} == ${b})` : `(${a} != ${b})`;
    case "negate":
      return type === "u32" ? `(~${a} + vec4<u32>(1u))` : `(-${a})`;
    case "sign":
      return type === "f32" ? `sign_of(${a})` : `sign(${a})`;
    case "relu":
      return `select(${a}, vec4<f32>(), ${a} < vec4<f32>())`;
    case "gelu":
      return params["approximate"] === true ? `gelu_tanh_of(${a})` : `gelu_of(${a})`;
    case "divide":
      return `divide_${type}(${a}, ${b})`;
    case "maximum":
    case "minimum":
      return type === "f32" ? `${op}(${a}, ${b})` : `${op === "maximum" ? "max" : "min"}(${a}, ${b})`;
    case "shift-left":
    case "shift-right":
      return `(${a} ${op === "shift-left" ? "<<" : ">>"} (vec4<u32>(${b}) & vec4<u32>(31u)))`;
    default:
      throw new InvariantError(`fused: no WGSL computes ${op} on ${type}`);
  }
};
