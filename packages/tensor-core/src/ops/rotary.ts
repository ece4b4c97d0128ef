import { ShapeError } from "../errors.ts";
import { emitOne } from "../graph/emit.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";
import { mapRows } from "./shared/rows.ts";

export type RotaryParams = { readonly base: number; readonly offset: number; readonly sign: 1 | -1 };

/**
 * Rotary position embedding: rotates the pair (i, i + D/2) of the row at position t by the angle
 * `sign · (t + offset) · base^(−2i/D)`. The gradient rotates in the opposite direction.
 */
export const rotaryOperator: Operator = defineOperator<RotaryParams>({
  name: "rotary",
  infer: ([x]) => {
    if (x!.dtype !== "f32" || x!.shape.length < 2 || x!.shape.at(-1)! % 2 !== 0) {
      throw new ShapeError(
        "rotary",
        `got ${formatSpec(x!)}, expected f32 [..., positions, D] with D even; cast or reshape it`,
      );
    }
    return [x!];
  },
  vjp: ({ cotangents: [g], params }) => [emitOne("rotary", [g!], { ...params, sign: -params.sign })],
  cost: ([x], [out]) => ({
    flops: 3 * elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: byteLength(out!),
  }),
  reference: ([x], { base, offset, sign }) => {
    const [positions, width] = x!.spec.shape.slice(-2) as [number, number];
    const half = width / 2;
    return [
      mapRows(x!.spec, (row, start, end) =>
        x!.data.subarray(start, end).map((value, i, pair) => {
          const angle = sign * ((row % positions) + offset) * base ** ((-2 * (i % half)) / width);
          return i < half
            ? value * Math.cos(angle) - pair[i + half]! * Math.sin(angle)
            : value * Math.cos(angle) + pair[i - half]! * Math.sin(angle);
        }),
      ),
    ];
  },
});
