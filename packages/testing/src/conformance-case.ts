import type { NdArray, Tensor } from "@skein/tensor-core";

/** One row of the conformance table: a traced function around one operator, with inputs. */
export interface ConformanceCase {
  /** The operator that this row covers, by its name in the operator table. */
  readonly op: string;
  /** What is special about the row: `odd sizes`, `zero rows`, `last dim, f16`. */
  readonly name: string;
  readonly fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[];
  readonly inputs: readonly NdArray[];
  /**
   * |actual − reference| ≤ absolute + relative · |reference|. Default for f32: 1e-5 and 1e-5; integers and bools must be equal. Gradients may be
   * off by a fixed factor more (`gradientToleranceOf`), so a row whose gradient needs more room states its own.
   */
  readonly tolerance?: { readonly absolute: number; readonly relative: number };
  /**
   * Check the gradient rule too: on the reference against central differences, and on the backend against the
   * reference. Positions of the inputs to differentiate. Leave out where the function is not differentiable.
   */
  readonly gradient?: readonly number[];
}
