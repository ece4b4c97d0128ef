import { didYouMean } from "../did-you-mean.ts";
import { ArgumentError } from "../errors.ts";
import { isUserOperator } from "../graph/operator.ts";

/**
 * Creates the kernel table of a backend, which maps operator names to kernels: the built-in kernels and the kernels of
 * users' operators.
 *
 * @param binds Name of the method that each kernel must have.
 */
export const kernelTable = <K extends { readonly op: string }>(
  ours: { readonly [op: string]: K },
  given: readonly K[],
  binds: keyof K & string,
): { readonly [op: string]: K } => {
  if (!Array.isArray(given)) throw new ArgumentError("kernels is no list; pass [kernel], even for a single kernel");
  const table = { ...ours };
  for (const kernel of given as readonly K[]) {
    const op: unknown = kernel?.op;
    if (typeof op !== "string" || !isUserOperator(op))
      throw new ArgumentError(
        `a kernel was given for operator ${JSON.stringify(op)}; kernels of one's own are for operators of one's own, by name: op: mish.operator.name`,
      );
    if (Object.hasOwn(table, op)) throw new ArgumentError(`two kernels were given for operator "${op}"; pass one`);
    if (typeof kernel[binds] !== "function")
      throw new ArgumentError(
        `the kernel for operator "${op}" has no ${binds}(); each kernel of this backend must have one`,
      );
    table[op] = kernel;
  }
  return table;
};

/** Returns the error text for an operator without a kernel on a backend, including a suggested fix. */
export const missingKernelReason = (op: string, kernels: { readonly [op: string]: unknown }): string => {
  if (!isUserOperator(op)) return "has no kernel on this backend";
  const near = didYouMean(op, Object.keys(kernels).filter(isUserOperator));
  const given = near === undefined ? "" : ` (it was given one for "${near}")`;
  return `has no kernel on this backend${given} and no composition; give the backend one ({ kernels: [...] } when you create it), or the operator a composition in defineOperator`;
};
