import type { DType } from "../dtype.ts";
import { emitOne } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { broadcastShapes, type Shape, sameShape } from "../shape.ts";

/** A tensor of `shape` with `value` everywhere. */
export const full = (shape: Shape, value: number, dtype: DType = "f32"): Tensor => emitOne("constant", [], { dtype, shape: [...shape], value });

/** A value that equals `x`; passes remove it. */
export const identity = (x: Tensor): Tensor => emitOne("identity", [x]);

type Operand = Tensor | number;

const stretch = (x: Tensor, shape: Shape): Tensor => (sameShape(x.shape, shape) ? x : emitOne("broadcast-to", [x], { shape: [...shape] }));

const binary = (op: string, a: Operand, b: Operand): Tensor => {
  if (typeof a === "number") {
    if (typeof b === "number") return emitOne(op, [full([], a), full([], b)]);
    return emitOne(op, [full(b.shape, a, b.dtype), b]);
  }
  if (typeof b === "number") return emitOne(op, [a, full(a.shape, b, a.dtype)]);
  const shape = broadcastShapes(a.shape, b.shape, op);
  return emitOne(op, [stretch(a, shape), stretch(b, shape)]);
};

/** `a + b`, stretched to a common shape. */
export const add = (a: Operand, b: Operand): Tensor => binary("add", a, b);

/** `a · b`, stretched to a common shape. */
export const multiply = (a: Operand, b: Operand): Tensor => binary("multiply", a, b);
