import { type Traced, unflattenTree } from "@skein/tensor-core";
import { specOf } from "@skein/tensor-core/backend";

/** Returns the specs of the result of a traced function, as a tree. */
export const resultSpecs = <Specs>({ graph, outputs }: Pick<Traced, "graph" | "outputs">): Specs =>
  unflattenTree<Specs>(
    outputs,
    graph.outputs.map((ref) => specOf(graph, ref)),
  );
