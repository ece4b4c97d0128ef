import { elementCount } from "@skein/tensor-core";
import type { Kernel } from "../kernel.ts";
import { triangularSolvePlan } from "../kernels/decomposition/triangular-solve.ts";

/** Blocked substitution; see `kernels/decomposition/triangular-solve.ts`. */
export const triangularSolveKernel: Kernel = {
  op: "triangular-solve",
  plan: ({ inputs: [, b], params }, facts) =>
    triangularSolvePlan(
      {
        batch: elementCount(b!.shape.slice(0, -2)),
        rows: b!.shape.at(-2)!,
        columns: b!.shape.at(-1)!,
        lower: params["lower"] === true,
        transpose: params["transpose"] === true,
        unitDiagonal: params["unitDiagonal"] === true,
      },
      facts,
    ),
};
