import type { CollectivePricer } from "./collective-price.ts";
import type { StepProgram } from "./step-program.ts";

/**
 * Price the collectives of a step anew, as for another number of ranks or other links. Kernels stay, so it is right
 * where what ranks compute does not depend on the group: a dense exchange with the same batch for each rank.
 *
 * @param collectives by axis; the step names no other.
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
