import { bytesPerElement, type DType, hostArrayType } from "../dtype.ts";
import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { formatSpec } from "../shape.ts";
import { elementwise } from "./shared/elementwise.ts";
import { castToOwn } from "./shared/movement-rules.ts";

const words: readonly DType[] = ["f32", "i32", "u32"];

const scratch: ArrayBuffer = new ArrayBuffer(4);

const reinterpret = (value: number, from: DType, to: DType): number => {
  new hostArrayType[from](scratch)[0] = value;
  return new hostArrayType[to](scratch)[0]!;
};

/** Replaces consecutive bitcasts by one bitcast to the final dtype. */
const bitcastOfBitcast: RewriteRule = (node, { producer, derive }) => {
  const inner = producer(node.inputs[0]!);
  return inner.op === "bitcast" ? derive(node, inner.inputs) : undefined;
};

export type BitcastParams = { readonly dtype: DType };

const rule: Operator = elementwise<BitcastParams>({
  name: "bitcast",
  viewOffset: () => 0,
  rewrites: [castToOwn, bitcastOfBitcast],
  arity: 1,
  dtypes: words,
  result: (_, { dtype }) => dtype,
  flops: 0,
  scalar: ([x], { dtype }, from) => reinterpret(x!, from, dtype),
});

/**
 * Reinterprets the 32 bits of each element as another dtype. The reference rounds to f32 before reading the bits, and
 * represents only one NaN; backends keep the bits of all NaNs.
 */
export const bitcastOperator: Operator = defineOperator({
  ...rule,
  infer: (inputs, params) => {
    const { dtype } = params as { dtype: DType };
    if (!words.includes(dtype))
      throw new ShapeError(
        "bitcast",
        `${formatSpec(inputs[0]!)} cannot be read as ${dtype}, which has ${bytesPerElement[dtype] ?? "no"} bytes per element; use ${words.join(", ")}, or cast the values`,
      );
    return rule.infer(inputs, params);
  },
});
