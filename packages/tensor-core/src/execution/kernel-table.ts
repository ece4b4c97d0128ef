import { didYouMean } from "../did-you-mean.ts";
import { ArgumentError } from "../errors.ts";
import { isUsersOperator } from "../graph/operator.ts";

/**
 * The kernels of a backend by operator name: ours, and those that the user gave for operators of their own.
 *
 * @param binds the function that each kernel of the backend has.
 */
export const kernelTable = <K extends { readonly op: string }>(
  ours: { readonly [op: string]: K },
  given: readonly K[],
  binds: keyof K & string,
): { readonly [op: string]: K } => {
  if (!Array.isArray(given)) throw new ArgumentError("kernels is no list; give [kernel], even for one");
  const table = { ...ours };
  for (const kernel of given as readonly K[]) {
    const op: unknown = kernel?.op;
    if (typeof op !== "string" || !isUsersOperator(op))
      throw new ArgumentError(
        `a kernel was given for operator ${JSON.stringify(op)}; kernels of one's own are for operators of one's own, by their name: op: mish.operator.name`,
      );
    if (Object.hasOwn(table, op)) throw new ArgumentError(`two kernels were given for operator "${op}"; give one`);
    if (typeof kernel[binds] !== "function")
      throw new ArgumentError(`the kernel for operator "${op}" has no ${binds}(); each kernel of this backend has one`);
    table[op] = kernel;
  }
  return table;
};

/** Why a backend with these kernels cannot run an operator that none of them is for, with the cure. */
export const lacksKernel = (op: string, kernels: { readonly [op: string]: unknown }): string => {
  if (!isUsersOperator(op)) return "has no kernel on this backend";
  const near = didYouMean(op, Object.keys(kernels).filter(isUsersOperator));
  const given = near === undefined ? "" : ` (it was given one for "${near}")`;
  return `has no kernel on this backend${given} and no composition; give the backend one ({ kernels: [...] } where it is made), or the operator a composition in defineOperator`;
};
