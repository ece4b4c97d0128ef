import { createCpuBackend } from "@skein/cpu-kernels";
import { jit, matmul, type NdArray, type Tensor } from "@skein/tensor-core";
import { type PreparedProblem, serve } from "../measure/serve.ts";
import { readProblem } from "../problems/problem.ts";
import { hostArray, trainingStep } from "./training-step.ts";

const checkedSteps = 5;

const backend = await createCpuBackend();

const prepareMatmul = async (a: NdArray, b: NdArray): Promise<PreparedProblem> => {
  const multiply = jit((x: Tensor, y: Tensor) => matmul(x, y), backend);
  const [left, right] = [backend.upload(a), backend.upload(b)];
  const product = await multiply(left, right);
  const checks = (await backend.download(product)).toNumbers();
  backend.free(product);
  return { checks, run: async () => backend.free(await multiply(left, right)) };
};

const prepare = async (_name: string, folder: string): Promise<PreparedProblem> => {
  const problem = readProblem(folder);
  if (problem.kind === "matmul") return prepareMatmul(hostArray(problem.values.a!), hostArray(problem.values.b!));
  const { step } = trainingStep(backend, problem);
  const checks: number[] = [];
  for (let i = 0; i < checkedSteps; i++) checks.push(await step());
  return { checks, run: async () => void (await step()) };
};

await serve({ version: "0.1.0", prepare });
