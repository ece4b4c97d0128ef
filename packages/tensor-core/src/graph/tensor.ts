import type { DType } from "../dtype.ts";
import type { Shape, TensorSpec } from "../shape.ts";
import { Printable } from "../printable.ts";
import type { ValueRef } from "./graph.ts";

/**
 * Symbolic value inside a trace: a shape, a dtype, and a reference to the node that computes the value. Has no data.
 */
export class Tensor extends Printable {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly ref: ValueRef;
  /** Trace that created the tensor. The tensor is invalid in other traces. */
  readonly trace: object;

  protected get kind(): "Tensor" {
    return "Tensor";
  }

  constructor(spec: TensorSpec, ref: ValueRef, trace: object) {
    super();
    this.dtype = spec.dtype;
    this.shape = spec.shape;
    this.ref = ref;
    this.trace = trace;
  }

  get rank(): number {
    return this.shape.length;
  }
}
