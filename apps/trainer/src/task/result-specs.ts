import { type Traced, unflattenTree } from "@skein/tensor-core";
import { specOf } from "@skein/tensor-core/backend";

/** The tree of specs of what a traced function gives. */
export const resultSpecs = <Specs>({ graph, outputs }: Pick<Traced, "graph" | "outputs">): Specs =>
  unflattenTree<Specs>(
    outputs,
    graph.outputs.map((ref) => specOf(graph, ref)),
  );
