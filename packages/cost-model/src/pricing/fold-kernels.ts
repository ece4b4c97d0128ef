import { bucketOfScope } from "./exchange-steps.ts";
import { type FreeStep, freeSteps, linkedSteps } from "./linked-steps.ts";
import type { KernelStep, StepProgram } from "./step-program.ts";

const mergeKernels = (a: KernelStep, b: KernelStep): KernelStep => ({
  ...a,
  name: "kernels",
  operator: "kernels",
  price: {
    ...a.price,
    flops: a.price.flops + b.price.flops,
    bytes: a.price.bytes + b.price.bytes,
    seconds: a.price.seconds + b.price.seconds,
    rooflineSeconds: a.price.rooflineSeconds + b.price.rooflineSeconds,
  },
});

/**
 * Merges consecutive kernels into one step, except the kernels of exchanges, which planners may move. The number of
 * simulated events is then proportional to the number of messages, so that comparing many exchanges is fast. Times do
 * not change, except for rounding.
 *
 * Cost: O(nodes).
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => sum(square(x)), [{ dtype: "f32", shape: [1024] }]);
 * const hardware = { device: hardwareNamed("v100").device, collectives: {} };
 * const program = stepProgram({ graph, settled: new Set() }, hardware);
 * console.log(program.length, foldKernels(program).length); // 2 1
 * ```
 */
export const foldKernels = (program: StepProgram): StepProgram => {
  const folded: FreeStep[] = [];
  for (const step of freeSteps(program)) {
    const last = folded.at(-1);
    const folds =
      step.kind === "kernel" &&
      last?.kind === "kernel" &&
      [step, last].every(({ scope }) => bucketOfScope(scope) === undefined);
    if (folds) folded[folded.length - 1] = mergeKernels(last, step);
    else folded.push(step);
  }
  return linkedSteps(folded);
};
