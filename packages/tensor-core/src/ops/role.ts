import type { Node } from "../graph/graph.ts";
import type { Role } from "../graph/operator.ts";
import { operators } from "./table.ts";

/** Returns the role of a node for executors; `undefined` for nodes that run a kernel or need no execution. */
export const roleOf = ({ op }: Pick<Node, "op">): Role | undefined => operators[op]?.role;
