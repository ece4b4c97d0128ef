import * as numbers from "../assembly/fused-opcode.ts";

/** A micro-operation of the `fused` kernel: its name in `assembly/fused-opcode.ts`, with a lower-case first letter. */
export type Opcode = Uncapitalize<keyof typeof numbers>;

/** The number of each micro-operation. */
export const opcodes = Object.fromEntries(
  Object.entries(numbers).map(([name, number]) => [name[0]!.toLowerCase() + name.slice(1), number]),
) as { readonly [op in Opcode]: number };
