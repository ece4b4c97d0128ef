import type { Job } from "../job.ts";
import type { CrossFieldFault } from "./cross-field-fault.ts";

/** Returns the problems found in the per-parameter options `rates` and `weightDecays`. */
export const parameterFaults = ({ rates, weightDecays, optimizer }: Job): CrossFieldFault[] => {
  // The last matching pattern decides, but objects keep the insertion order only of keys that are not integers.
  const numbers = Object.entries({ rates, weightDecays }).flatMap(([key, factors = {}]) =>
    Object.keys(factors)
      .filter((name) => /^\d+$/.test(name))
      .map((name) => ({
        path: [key, name],
        rule: `a bare number loses its position among the patterns, of which the last match decides; write @(${name})`,
      })),
  );
  const rule = weightDecays && noDecayReason(optimizer);
  return rule === undefined ? numbers : [...numbers, { path: ["weightDecays"], rule }];
};

/**
 * Returns the reason why weight-decay factors have no effect with this optimizer. Undefined: the factors have an
 * effect.
 */
const noDecayReason = (optimizer: Job["optimizer"]): string | undefined => {
  if (optimizer.kind === "module" || optimizer.kind === "program")
    return "weightDecays are factors of the weight decay of a built-in optimizer, but a user optimizer applies its own weight decay; pass them in its options";
  if (!("weightDecay" in optimizer))
    return `weightDecays are factors of weight decay, but ${optimizer.kind} has no weight decay; use adamw, or leave weightDecays out`;
  return optimizer.weightDecay > 0
    ? undefined
    : "weightDecays are factors of optimizer.weightDecay, which is 0; set optimizer.weightDecay, such as 0.01, or leave weightDecays out";
};
