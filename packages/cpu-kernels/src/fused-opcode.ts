import * as numbers from "../assembly/fused-opcode.ts";

/**
 * Name of a micro-operation of the `fused` kernel: the name in `assembly/fused-opcode.ts` with a lower-case first
 * letter.
 */
export type Opcode = Uncapitalize<keyof typeof numbers>;

/** Number of each micro-operation, by name. */
export const opcodes = Object.fromEntries(
  Object.entries(numbers).map(([name, number]) => [name[0]!.toLowerCase() + name.slice(1), number]),
) as { readonly [op in Opcode]: number };
