import { ArgumentError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, resolveDim } from "../shape.ts";
import { concat, split } from "./movement.ts";

/**
 * Shifts the entries of `x` by `shift` positions towards higher indices along `dim`; entries shifted beyond the end are
 * inserted at the beginning. Negative shifts move entries towards lower indices.
 *
 * @throws ArgumentError if the shift is not an integer, or if `dim` is missing.
 * Cost: one read and one write of `x`.
 * @example
 * ```ts
 * const apply = (x: Tensor) => roll(x, 1, { dim: 0 });
 * const result = await evaluate(apply, referenceBackend())(NdArray.from([1, 2, 3]));
 * console.log(result.toNumbers()); // [3, 1, 2]
 * ```
 */
export const roll = (x: Tensor, shift: number, options: { readonly dim: number }): Tensor => {
  requireOperands("roll", [x]);
  if (options === undefined)
    throw new ArgumentError(
      `roll: no dimension was given for ${formatSpec(x)}; pass one: roll(x, ${shift}, { dim: 0 })`,
    );
  const { dim } = checkOptions("roll(x, shift)", options, { dim: true });
  const along = resolveDim(dim, x.rank, "roll");
  if (!Number.isInteger(shift))
    throw new ArgumentError(`roll: a shift of ${shift} is not a whole number of entries; round it`);
  const size = x.shape[along]!;
  const leaving = size === 0 ? 0 : ((shift % size) + size) % size;
  if (leaving === 0) return x;
  const [first, last] = split(x, [size - leaving, leaving], { dim: along });
  return concat([last!, first!], { dim: along });
};
