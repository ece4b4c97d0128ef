import type { CollectivePricer } from "./collective-price.ts";
import type { StepProgram } from "./step-program.ts";

/**
 * Price the collectives of a step again, for another number of ranks or other links. Kernels stay the same, so this is
 * valid if the ranks' computation does not depend on the group: a dense exchange with the same batch per rank.
 *
 * @param collectives by axis; must include all axes of the step.
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
