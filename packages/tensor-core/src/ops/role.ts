import type { Node } from "../graph/graph.ts";
import type { Role } from "../graph/operator.ts";
import { operators } from "./table.ts";

/** Executor's role for a node; `undefined` for nodes that run a kernel, or nothing. */
export const roleOf = ({ op }: Pick<Node, "op">): Role | undefined => operators[op]?.role;
