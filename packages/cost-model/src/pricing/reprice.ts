import type { CollectivePricer } from "./collective-price.ts";
import type { StepProgram } from "./step-program.ts";

/**
 * Price the collectives of a step again for another number of ranks or other links. The prices of kernels do not
 * change, so the result is valid only if the ranks' computation does not depend on the group, as for a dense exchange
 * with the same batch per rank.
 *
 * @param collectives Pricers of collectives, by axis; must contain all axes of the step.
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
