import { type DType, dtypes, integerRange, isFloat } from "../dtype.ts";
import { cast } from "../functions/elementwise.ts";
import type { Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { elementwise } from "./shared/elementwise.ts";
import { castToOwn } from "./shared/movement-rules.ts";

// Dtypes that represent all values of the key dtype exactly. A cast to a listed dtype and back changes nothing.
const widenings: { readonly [narrow in DType]?: readonly DType[] } = {
  f16: ["f32"],
  bf16: ["f32"],
  u8: ["i32", "u32", "f32"],
  bool: ["u8", "i32", "u32", "f32", "f16", "bf16"],
};

const castOfCast: RewriteRule = ({ inputs, specs }, { producer, spec }) => {
  const inner = producer(inputs[0]!);
  if (inner.op !== "cast") return undefined;
  const from = spec(inner.inputs[0]!).dtype;
  return from === specs[0]!.dtype && widenings[from]?.includes(inner.specs[0]!.dtype) === true
    ? inner.inputs[0]!
    : undefined;
};

const fromFloat = (x: number, dtype: DType): number => {
  const range = integerRange[dtype];
  if (range === undefined) return x;
  return Number.isNaN(x) ? 0 : Math.min(Math.max(Math.trunc(x), range[0]), range[1]);
};

export type CastParams = { readonly dtype: DType };

/**
 * Converts each element to another dtype. To an integer dtype: floats are truncated and clamped to the range (NaN
 * becomes 0), integers wrap around. To bool: all values except 0 are true. To f16 and bf16: rounded to nearest, ties to
 * even.
 */
export const castOperator: Operator = elementwise<CastParams>({
  name: "cast",
  formula: ([x], { dtype }) => `${dtype}(${x})`,
  rearranges: true,
  rewrites: [castToOwn, castOfCast],
  arity: 1,
  dtypes: dtypes,
  result: (_, { dtype }) => dtype,
  scalar: ([x], { dtype }, from) => (isFloat(from) ? fromFloat(x!, dtype) : x!),
  vjp: ({ inputs: [x], cotangents: [g], params: { dtype } }) => [
    isFloat(dtype) && isFloat(x!.dtype) ? cast(g!, x!.dtype) : undefined,
  ],
});
