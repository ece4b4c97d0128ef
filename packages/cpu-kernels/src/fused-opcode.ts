import * as numbers from "../assembly/fused-opcode.ts";

/**
 * A micro-operation of the `fused` kernel: the name of its number in `assembly/fused-opcode.ts`, first letter small.
 */
export type Opcode = Uncapitalize<keyof typeof numbers>;

/** The number of each micro-operation. */
export const opcodes = Object.fromEntries(
  Object.entries(numbers).map(([name, number]) => [name[0]!.toLowerCase() + name.slice(1), number]),
) as { readonly [op in Opcode]: number };
