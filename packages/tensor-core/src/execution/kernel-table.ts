import { ArgumentError } from "../errors.ts";
import { isUsersOperator } from "../graph/operator.ts";

/** The kernels of a backend by operator: ours, and those that the user gave for operators of their own. */
export const kernelTable = <K extends { readonly op: string }>(
  ours: { readonly [op: string]: K },
  given: readonly K[],
): { readonly [op: string]: K } => {
  const table = { ...ours };
  for (const kernel of given) {
    const { op } = kernel;
    if (typeof op !== "string" || !isUsersOperator(op))
      throw new ArgumentError(
        `a kernel was given for operator ${JSON.stringify(op)}; kernels of one's own are for operators of one's own, by their name: op: mish.operator.name`,
      );
    if (Object.hasOwn(table, op)) throw new ArgumentError(`two kernels were given for operator "${op}"; give one`);
    table[op] = kernel;
  }
  return table;
};

/** Why a backend without a kernel cannot run a node, with the cure. */
export const lacksKernel = (op: string): string =>
  isUsersOperator(op)
    ? "has no kernel on this backend and no composition; give the backend one ({ kernels: [...] } where it is made), or the operator a composition in defineOperator"
    : "has no kernel on this backend";
