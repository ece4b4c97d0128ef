import { ShapeError } from "../errors.ts";
import { split } from "../functions/movement.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { elementCount, formatSpec } from "../shape.ts";
import { moveCost } from "./strided.ts";

/** Lay tensors one after another along `dim`; all other sizes and the dtype agree. */
export const concatOperator: Operator = defineOperator<{ dim: number }>({
  name: "concat",
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
        shape: first.shape.map((size, i) => (i === dim ? inputs.reduce((sum, input) => sum + input.shape[dim]!, 0) : size)),
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
