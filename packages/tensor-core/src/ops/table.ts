import type { Operator, OperatorTable } from "../graph/operator.ts";
import { addOperator } from "./add.ts";
import { constantOperator } from "./constant.ts";
import { identityOperator } from "./identity.ts";
import { inputOperator } from "./input.ts";
import { multiplyOperator } from "./multiply.ts";

const rows: readonly Operator[] = [
  addOperator,
  constantOperator,
  identityOperator,
  inputOperator,
  multiplyOperator,
];

/** Every operator of Skein by name. A new operator is one file and one row. */
export const operators: OperatorTable = Object.fromEntries(rows.map((operator) => [operator.name, operator]));
