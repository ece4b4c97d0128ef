import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { Job } from "./job.ts";

const pattern = z.string().min(1, "a pattern is a path of a parameter, or of a part of the model");

const howToMean =
  "by paths as checkpoints write them: a parameter (blocks.0.query.weight), a part of the model with all in it (blocks.0), a pattern (blocks.*.query, **.bias, blocks.{0..5}), or norms-and-biases, all of fewer than two dimensions; the last that fits decides";

/** The field `freeze` of a job. */
export const freezeSchema: z.ZodType<Job["freeze"]> = z
  .array(pattern)
  .min(1)
  .optional()
  .describe(
    `Parameters that stay as they are, ${howToMean}, and one that begins with ! takes back what those before it froze. Default: none.`,
  );

/** The field `rates` of a job. */
export const ratesSchema: z.ZodType<Job["rates"]> = z
  .record(pattern, z.number().gt(0))
  .optional()
  .describe(`Factors of the learning rate of some parameters, ${howToMean}. Default: 1 of all.`);

/** The field `weightDecays` of a job. */
export const weightDecaysSchema: z.ZodType<Job["weightDecays"]> = z
  .record(pattern, z.number().min(0))
  .optional()
  .describe(
    `Factors of optimizer.weightDecay of some parameters, ${howToMean}. Default: 1, and 0 of norms-and-biases with adamw, soap, lars and lamb.`,
  );

/** Rules about what is said of single parameters. */
export const parameterFaults = ({ rates, weightDecays, optimizer }: Job): CrossFieldFault[] => {
  // Objects keep the order of their keys, but not of numbers, and the last pattern decides.
  const numbers = Object.entries({ rates, weightDecays }).flatMap(([key, factors = {}]) =>
    Object.keys(factors)
      .filter((name) => /^\d+$/.test(name))
      .map((name) => ({
        path: [key, name],
        rule: `a number alone loses its place among the patterns, the last of which decides; write it as @(${name})`,
      })),
  );
  const rule = weightDecays && whyNoDecay(optimizer);
  return rule === undefined ? numbers : [...numbers, { path: ["weightDecays"], rule }];
};

/** Why factors of an optimizer's weight decay have no effect; undefined where they have. */
const whyNoDecay = (optimizer: Job["optimizer"]): string | undefined => {
  if (optimizer.kind === "module" || optimizer.kind === "program")
    return "these are factors of the weight decay of an optimizer of ours, and one of yours decays by itself; say it in its options";
  if (!("weightDecay" in optimizer))
    return `${optimizer.kind} has no weight decay, of which these are factors; use adamw, or leave them out`;
  return optimizer.weightDecay > 0
    ? undefined
    : "optimizer.weightDecay is 0, of which these are factors; give it a value, such as 0.01, or leave them out";
};
