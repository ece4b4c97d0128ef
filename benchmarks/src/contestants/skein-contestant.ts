import { type Backend, jit, matmul, NdArray, type Tensor } from "@skein/tensor-core";
import type { Contestant, PreparedProblem } from "../measure/contestant.ts";
import { sampleOf } from "../problems/sample.ts";
import { hostArray, trainingStep } from "./training-step.ts";

const checkedSteps = 5;

/**
 * Returns the implementation that computes with Skein on a given backend.
 *
 * @param settle Waits until the backend has finished all submitted work.
 */
export const skeinContestant = (
  backend: Backend,
  settle: () => Promise<unknown> = async () => undefined,
): Contestant => {
  const prepareMatmul = async (a: NdArray, b: NdArray, precision: "f16" | "f32"): Promise<PreparedProblem> => {
    const multiply = jit((x: Tensor, y: Tensor) => matmul(x, y), backend);
    const upload = (matrix: NdArray) => backend.upload(NdArray.from(matrix.data, matrix.shape, precision));
    const [left, right] = [upload(a), upload(b)];
    const product = await multiply(left, right);
    const checks = sampleOf((await backend.download(product)).toNumbers());
    backend.free(product);
    return {
      checks,
      run: async () => {
        backend.free(await multiply(left, right));
        await settle();
      },
    };
  };
  return {
    version: "0.1.0",
    prepare: async (problem) => {
      if (problem.kind === "matmul")
        return prepareMatmul(
          hostArray(problem.values.a!),
          hostArray(problem.values.b!),
          problem.precision === "f16" ? "f16" : "f32",
        );
      const { step } = trainingStep(backend, problem);
      const checks: number[] = [];
      for (let i = 0; i < checkedSteps; i++) checks.push(await step());
      return { checks, run: async () => void (await step()) };
    },
  };
};
