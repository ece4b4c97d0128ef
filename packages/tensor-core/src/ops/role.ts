import type { Node } from "../graph/graph.ts";
import type { Role } from "../graph/operator.ts";
import { operators } from "./table.ts";

/** What an executor does itself with a node; `undefined` where a kernel runs, or nothing. */
export const roleOf = ({ op }: Pick<Node, "op">): Role | undefined => operators[op]?.role;
