import type { CollectivePricer } from "./collective-price.ts";
import type { StepProgram } from "./step-program.ts";

/**
 * Predicts the times of a step's collectives again, for another number of ranks or other links. The predicted times of
 * kernels do not change. So the result is valid only if a rank's computation does not depend on the group, as for a
 * dense exchange with the same batch per rank.
 *
 * @param collectives Functions that predict the times of collectives, by mesh axis; must contain all axes of the step.
 * @example
 * ```ts
 * import { optimize } from "@skein/tensor-core/backend";
 * const options = { mesh: { data: 2 }, place: { data: 0 } };
 * const { graph } = trace((x: Tensor) => allReduce(x, "data"), [{ dtype: "f32", shape: [1024] }], options);
 * const { device } = hardwareNamed("v100");
 * const [near, far] = [true, false].map((sharesMemory) => collectivePricers({ data: { worldSize: 2, sharesMemory } }));
 * const program = stepProgram({ graph: optimize(graph), settled: new Set() }, { device, collectives: near! });
 * console.log(reprice(program, far!).length === program.length); // true
 * ```
 */
export const reprice = (
  program: StepProgram,
  collectives: { readonly [axis: string]: CollectivePricer },
): StepProgram =>
  program.map((step) =>
    step.kind === "start"
      ? { ...step, price: collectives[step.axis]!(step.collective, step.bytes, step.isRagged) }
      : step,
  );
