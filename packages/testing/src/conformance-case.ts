import type { NdArray, Tensor } from "@skein/tensor-core";

/** Conformance case: a function that uses one operator, and its inputs. */
export interface ConformanceCase {
  /** Operator that this case covers, as named in the operator table. */
  readonly op: string;
  /**
   * Property that distinguishes this case from the other cases of the operator, such as `odd sizes`, `zero rows`,
   * `last dim, f16`.
   */
  readonly name: string;
  readonly fn: (...inputs: Tensor[]) => Tensor | readonly Tensor[];
  readonly inputs: readonly NdArray[];
  /**
   * Tolerance of results: |actual − reference| ≤ absolute + relative · |reference|. Default for f32: 1e-5 and 1e-5.
   * Integers and bools must be equal. The tolerance of gradients is larger by a fixed factor (`gradientToleranceOf`),
   * so a case whose gradient needs a larger tolerance sets `tolerance`.
   */
  readonly tolerance?: { readonly absolute: number; readonly relative: number };
  /**
   * Positions of the inputs to differentiate. The reference's gradient is compared with central differences, and the
   * backend's gradient with the reference. Absent: gradients are not checked.
   */
  readonly gradient?: readonly number[];
}
