import { InvariantError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";

export type InputParams = { readonly index: number };

/** Argument of the graph. Only `trace` creates input nodes, with given specs. */
export const inputOperator: Operator = defineOperator<InputParams>({
  name: "input",
  role: "argument",
  infer: () => {
    throw new InvariantError("input nodes are made by trace, not emitted");
  },
  cost: () => ({ flops: 0, bytesRead: 0, bytesWritten: 0 }),
  reference: () => {
    throw new InvariantError("input nodes are bound by the interpreter, not computed");
  },
});
