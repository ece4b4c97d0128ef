import { ArgumentError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { checkOptions } from "../options.ts";
import { formatSpec, resolveDim } from "../shape.ts";
import { concat, split } from "./movement.ts";

/**
 * `x` with its entries moved `shift` places up along `dim`; those that leave at the end come in at the beginning.
 * Negative shifts move them down.
 *
 * @throws ArgumentError for a shift that is no whole number, or without a `dim`: there is no default, since none is
 * what most would expect.
 * Cost: one read and one write of `x`.
 */
export const roll = (x: Tensor, shift: number, options: { readonly dim: number }): Tensor => {
  requireOperands("roll", [x]);
  if (options === undefined)
    throw new ArgumentError(
      `roll: no dimension was given for ${formatSpec(x)}; say which one: roll(x, ${shift}, { dim: 0 })`,
    );
  const { dim } = checkOptions("roll(x, shift)", options, { dim: true });
  const along = resolveDim(dim, x.rank, "roll");
  if (!Number.isInteger(shift))
    throw new ArgumentError(`roll: a shift of ${shift} is no whole number of entries; round it`);
  const size = x.shape[along]!;
  const leaving = size === 0 ? 0 : ((shift % size) + size) % size;
  if (leaving === 0) return x;
  const [first, last] = split(x, [size - leaving, leaving], { dim: along });
  return concat([last!, first!], { dim: along });
};
