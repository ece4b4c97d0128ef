import { type DType, type FusedInstruction, InvariantError, isFloat } from "@skein/tensor-core";

// WGSL of single elementwise operators on vectors of four. A bool is a `vec4<bool>`, a u8 a `vec4<u32>`.

/** Functions that some expressions call, by name; each is put into a shader that mentions it. */
export const functions: { readonly [name: string]: string } = {
  is_nan: "fn is_nan(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u); }",
  is_finite: "fn is_finite(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7f800000u)) != vec4<u32>(0x7f800000u); }",
  maximum: "fn maximum(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return select(select(max(a, b), b, is_nan(b)), a, is_nan(a)); }",
  minimum: "fn minimum(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return select(select(min(a, b), b, is_nan(b)), a, is_nan(a)); }",
  sigmoid: "fn sigmoid(x: vec4<f32>) -> vec4<f32> { return 1.0 / (1.0 + exp(-x)); }",
  softplus: "fn softplus(x: vec4<f32>) -> vec4<f32> { return max(x, vec4<f32>()) + log(1.0 + exp(-abs(x))); }",
  tanh_of: "fn tanh_of(x: vec4<f32>) -> vec4<f32> { return select(tanh(clamp(x, vec4<f32>(-15.0), vec4<f32>(15.0))), x, is_nan(x)); }",
  // Abramowitz and Stegun 7.1.26, |error| < 1.5e-7.
  erf_of: `fn erf_of(x: vec4<f32>) -> vec4<f32> {
  let t = 1.0 / (1.0 + 0.3275911 * abs(x));
  let p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(x) * (1.0 - p * exp(-x * x));
}`,
  power: `fn power(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  let odd = fract(abs(b) * 0.5) == vec4<f32>(0.5);
  let magnitude = pow(abs(a), b);
  let signed = select(magnitude, -magnitude, (a < vec4<f32>()) & odd);
  return select(signed, vec4<f32>(1.0), b == vec4<f32>());
}`,
  divide_i: "fn divide_i(a: vec4<i32>, b: vec4<i32>) -> vec4<i32> { return select(a / select(b, vec4<i32>(1), b == vec4<i32>()), vec4<i32>(), b == vec4<i32>()); }",
  divide_u: "fn divide_u(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> { return select(a / select(b, vec4<u32>(1u), b == vec4<u32>()), vec4<u32>(), b == vec4<u32>()); }",
};

const needs: { readonly [name: string]: readonly string[] } = { maximum: ["is_nan"], minimum: ["is_nan"], tanh_of: ["is_nan"] };

/** The functions that `code` calls, and those that they call. */
export const functionsFor = (code: string): string => {
  const wanted = new Set<string>();
  const want = (name: string): void => {
    for (const other of needs[name] ?? []) want(other);
    wanted.add(name);
  };
  for (const name of Object.keys(functions)) if (new RegExp(`\\b${name}\\(`).test(code)) want(name);
  return [...wanted].map((name) => functions[name]!).join("\n");
};

const infix: { readonly [op: string]: string } = {
  add: "+",
  subtract: "-",
  multiply: "*",
  equal: "==",
  "not-equal": "!=",
  less: "<",
  "less-equal": "<=",
  greater: ">",
  "greater-equal": ">=",
  "bitwise-and": "&",
  "bitwise-or": "|",
  "bitwise-xor": "^",
  "logical-and": "&",
  "logical-or": "|",
  "logical-xor": "!=",
};

const calls: { readonly [op: string]: string } = {
  absolute: "abs",
  ceil: "ceil",
  cos: "cos",
  erf: "erf_of",
  exp: "exp",
  floor: "floor",
  "is-finite": "is_finite",
  log: "log",
  power: "power",
  round: "round",
  rsqrt: "inverseSqrt",
  sigmoid: "sigmoid",
  sign: "sign",
  sin: "sin",
  softplus: "softplus",
  sqrt: "sqrt",
  tanh: "tanh_of",
};

const castExpression = (x: string, from: DType, to: DType): string => {
  if (from === to) return x;
  if (to === "f16") return `unpack_half(pack_half(${castExpression(x, from, "f32")}))`;
  if (to === "bf16") return `bitcast<vec4<f32>>(round_bf16(${castExpression(x, from, "f32")}) << vec4<u32>(16u))`;
  if (isFloat(to)) return isFloat(from) ? x : `vec4<f32>(${x})`;
  if (to === "bool") return `(${x} != vec4<${isFloat(from) ? "f32" : from === "i32" ? "i32" : "u32"}>())`;
  if (isFloat(from)) {
    const clean = `select(${x}, vec4<f32>(), is_nan(${x}))`;
    if (to === "u8") return `vec4<u32>(clamp(${clean}, vec4<f32>(), vec4<f32>(255.0)))`;
    return `vec4<${to}>(${clean})`;
  }
  if (to === "u8") return `(vec4<u32>(${x}) & vec4<u32>(255u))`;
  return `vec4<${to}>(${x})`;
};

/** The expression of an instruction over registers, dtypes of the operands given. */
export const expressionOf = ({ op, dtype, params }: FusedInstruction, args: readonly string[], from: readonly DType[]): string => {
  const [a, b, c] = args as [string, string, string];
  const [type] = from;
  const integer = type === "i32" || type === "u32" || type === "u8";
  if (op in infix && type !== "bool") return `(${a} ${infix[op]} ${b})`;
  if (op in calls) return `${calls[op]}(${a})${""}`.replace(/\)$/, b === undefined ? ")" : `, ${b})`);
  switch (op) {
    case "identity":
    case "stop-gradient":
      return a;
    case "cast":
      return castExpression(a, type!, dtype);
    case "where":
      return `select(${c}, ${b}, ${a})`;
    case "negate":
      return type === "u32" ? `(~${a} + vec4<u32>(1u))` : `(-${a})`;
    case "relu":
      return `maximum(${a}, vec4<f32>())`;
    case "silu":
      return `(${a} * sigmoid(${a}))`;
    case "gelu":
      return params["approximate"] === true
        ? `(0.5 * ${a} * (1.0 + tanh_of(0.7978845608028654 * (${a} + 0.044715 * ${a} * ${a} * ${a}))))`
        : `(0.5 * ${a} * (1.0 + erf_of(${a} * 0.7071067811865476)))`;
    case "divide":
      return type === "f32" ? `(${a} / ${b})` : `divide_${type === "i32" ? "i" : "u"}(${a}, ${b})`;
    case "maximum":
    case "minimum":
      if (type === "bool") return op === "maximum" ? `(${a} | ${b})` : `(${a} & ${b})`;
      return integer ? `${op === "maximum" ? "max" : "min"}(${a}, ${b})` : `${op}(${a}, ${b})`;
    case "shift-left":
    case "shift-right":
      return `(${a} ${op === "shift-left" ? "<<" : ">>"} (vec4<u32>(${b}) & vec4<u32>(31u)))`;
    case "logical-not":
      return `!${a}`;
    case "logical-and":
    case "logical-or":
      return `(${a} ${infix[op]} ${b})`;
    case "logical-xor":
    case "not-equal":
    case "equal":
      return `(${a} ${op === "equal" ? "==" : "!="} ${b})`;
    case "less":
      return `(!${a} & ${b})`;
    case "less-equal":
      return `(!${a} | ${b})`;
    case "greater":
      return `(${a} & !${b})`;
    case "greater-equal":
      return `(${a} | !${b})`;
    default:
      throw new InvariantError(`fused: no WGSL computes ${op} on ${type}`);
  }
};
