import { elementCount } from "@skein/tensor-core";
import { type Kernel, kernelOf } from "../kernel.ts";
import { triangularSolvePlan } from "../kernels/decomposition/triangular-solve.ts";

/** Solves triangular systems block by block; see `kernels/decomposition/triangular-solve.ts`. */
export const triangularSolveKernel: Kernel = kernelOf({
  op: "triangular-solve",
  plan: ({ inputs: [, b], params }, facts) =>
    triangularSolvePlan(
      {
        batch: elementCount(b!.shape.slice(0, -2)),
        rows: b!.shape.at(-2)!,
        columns: b!.shape.at(-1)!,
        lower: params.lower,
        transpose: params.transpose,
        unitDiagonal: params.unitDiagonal,
      },
      facts,
    ),
});
