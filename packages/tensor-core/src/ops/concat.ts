import { ShapeError } from "../errors.ts";
import { split } from "../functions/movement.ts";
import type { ValueRef } from "../graph/graph.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import type { RewriteRule } from "../graph/rewrite-rule.ts";
import { elementCount, formatSpec, sameShape } from "../shape.ts";
import { moveCost } from "./shared/strided.ts";
import { listOf } from "./shared/movement-rules.ts";

/** Removes empty operands, and replaces a `concat` of a single operand by the operand. */
const concatOfFew: RewriteRule = (node, { spec, derive }) => {
  const { inputs } = node;
  const filled = inputs.filter((ref) => elementCount(spec(ref).shape) > 0);
  if (filled.length === 1 && inputs.length > 0) return filled[0]!;
  return filled.length === inputs.length || filled.length === 0 ? undefined : derive(node, filled);
};

/**
 * Replaces a `concat` of consecutive slices that cover a whole tensor by the tensor. Example: a gradient bucket that is
 * unpacked and packed again.
 */
const concatOfSlices: RewriteRule = ({ inputs, params, specs }, { producer, spec }) => {
  const dim = params["dim"] as number;
  let whole: ValueRef | undefined;
  let next = 0;
  for (const ref of inputs) {
    const { op, inputs: operands, params: cut } = producer(ref);
    const source = operands[0];
    if (op !== "slice" || source === undefined) return undefined;
    whole ??= source;
    if (
      whole.node !== source.node ||
      whole.output !== source.output ||
      listOf(cut["strides"]).some((stride) => stride !== 1)
    )
      return undefined;
    const starts = listOf(cut["starts"]);
    if (starts.some((start, i) => start !== (i === dim ? next : 0))) return undefined;
    next = listOf(cut["ends"])[dim]!;
  }
  return whole !== undefined && sameShape(spec(whole).shape, specs[0]!.shape) ? whole : undefined;
};

export type ConcatParams = { readonly dim: number };

/** Concatenates tensors along `dim`. Sizes of all other dimensions and dtypes must be equal. */
export const concatOperator: Operator = defineOperator<ConcatParams>({
  name: "concat",
  joinsOperands: ({ outputs: [result], params: { dim } }) => result!.shape.slice(0, dim).every((size) => size === 1),
  rewrites: [concatOfFew, concatOfSlices],
  infer: (inputs, { dim }) => {
    const first = inputs[0];
    if (first === undefined) throw new ShapeError("concat", "no tensors were given; pass at least one");
    for (const input of inputs) {
      if (
        input.dtype !== first.dtype ||
        input.shape.length !== first.shape.length ||
        input.shape.some((size, i) => i !== dim && size !== first.shape[i])
      ) {
        throw new ShapeError(
          "concat",
          `${formatSpec(first)} and ${formatSpec(input)} do not fit along dimension ${dim}: dtype and all other sizes must be equal`,
        );
      }
    }
    return [
      {
        dtype: first.dtype,
        shape: first.shape.map((size, i) =>
          i === dim ? inputs.reduce((sum, input) => sum + input.shape[dim]!, 0) : size,
        ),
      },
    ];
  },
  vjp: ({ inputs, cotangents: [g], params: { dim } }) =>
    split(
      g!,
      inputs.map((input) => input.shape[dim]!),
      { dim },
    ),
  cost: moveCost,
  reference: (inputs, { dim }, [out]) => {
    const result = new Float64Array(elementCount(out!.shape));
    const outer = elementCount(out!.shape.slice(0, dim));
    const row = elementCount(out!.shape.slice(dim));
    let column = 0;
    for (const { spec, data } of inputs) {
      const width = elementCount(spec.shape.slice(dim));
      for (let i = 0; i < outer; i++) result.set(data.subarray(i * width, (i + 1) * width), i * row + column);
      column += width;
    }
    return [result];
  },
});
