import type { NdArray, Tensor } from "@skein/tensor-core";

/** One row of the conformance table: a traced function around one operator, with inputs. */
export interface ConformanceCase {
  /** Name, in the operator table, of the operator that this row covers. */
  readonly op: string;
  /** Special property of the row, such as `odd sizes`, `zero rows`, `last dim, f16`. */
  readonly name: string;
  readonly fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[];
  readonly inputs: readonly NdArray[];
  /**
   * |actual − reference| ≤ absolute + relative · |reference|. Default for f32: 1e-5 and 1e-5; integers and bools must
   * be equal. The tolerance of gradients is larger by a fixed factor (`gradientToleranceOf`), so a row whose gradient
   * needs more sets its own tolerance.
   */
  readonly tolerance?: { readonly absolute: number; readonly relative: number };
  /**
   * Positions of the inputs to differentiate. Checks the gradient rule, too: on the reference against central
   * differences, and on the backend against the reference. Absent: the function is not differentiable.
   */
  readonly gradient?: readonly number[];
}
