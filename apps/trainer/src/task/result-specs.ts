import { type Traced, unflattenTree } from "@skein/tensor-core";
import { specOf } from "@skein/tensor-core/backend";

/** Tree of the result specs of a traced function. */
export const resultSpecs = <Specs>({ graph, outputs }: Pick<Traced, "graph" | "outputs">): Specs =>
  unflattenTree<Specs>(
    outputs,
    graph.outputs.map((ref) => specOf(graph, ref)),
  );
