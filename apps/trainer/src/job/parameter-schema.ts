import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { Job } from "./job.ts";

const pattern = z.string().min(1, "a pattern is a path of a parameter, or of a part of the model");

const patternRule =
  "selected by paths as in checkpoints: a parameter (blocks.0.query.weight), a part of the model with everything in it (blocks.0), a pattern (blocks.*.query, **.bias, blocks.{0..5}), or norms-and-biases, all parameters of fewer than two dimensions; the last matching pattern decides";

/** Schema of the field `freeze` of a job. */
export const freezeSchema: z.ZodType<Job["freeze"]> = z
  .array(pattern)
  .min(1)
  .optional()
  .describe(
    `Frozen parameters, ${patternRule}. A pattern that begins with ! unfreezes parameters frozen by earlier patterns. Default: nothing is frozen.`,
  );

/** Schema of the field `rates` of a job. */
export const ratesSchema: z.ZodType<Job["rates"]> = z
  .record(pattern, z.number().gt(0))
  .optional()
  .describe(`Learning-rate factors of parameters, ${patternRule}. Default: 1.`);

/** Schema of the field `weightDecays` of a job. */
export const weightDecaysSchema: z.ZodType<Job["weightDecays"]> = z
  .record(pattern, z.number().min(0))
  .optional()
  .describe(
    `Factors of optimizer.weightDecay, ${patternRule}. Default: 1, or 0 for norms-and-biases with adamw, soap, lars and lamb.`,
  );

/** Returns the faults in the options of single parameters. */
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

/** Returns the reason why weight-decay factors have no effect with this optimizer. Undefined: they have an effect. */
const noDecayReason = (optimizer: Job["optimizer"]): string | undefined => {
  if (optimizer.kind === "module" || optimizer.kind === "program")
    return "weightDecays are factors of the weight decay of a built-in optimizer, but a user optimizer applies its own weight decay; pass them in its options";
  if (!("weightDecay" in optimizer))
    return `weightDecays are factors of weight decay, but ${optimizer.kind} has no weight decay; use adamw, or leave weightDecays out`;
  return optimizer.weightDecay > 0
    ? undefined
    : "weightDecays are factors of optimizer.weightDecay, which is 0; set optimizer.weightDecay, such as 0.01, or leave weightDecays out";
};
