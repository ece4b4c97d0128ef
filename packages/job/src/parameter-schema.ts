import { z } from "zod";

const pattern = z.string().min(1, "a pattern is a path of a parameter, or of a part of the model");

const patternRule =
  "selected by paths as in checkpoints: a parameter (blocks.0.query.weight), a part of the model with everything in it (blocks.0), a pattern (blocks.*.query, **.bias, blocks.{0..5}), or norms-and-biases, all parameters of fewer than two dimensions; the last matching pattern decides";

/** Schema of the field `freeze` of a job. */
export const freezeSchema = z
  .array(pattern)
  .min(1)
  .optional()
  .describe(
    `Frozen parameters, ${patternRule}. A pattern that begins with ! unfreezes parameters frozen by earlier patterns. Default: nothing is frozen.`,
  );

/** Schema of the field `rates` of a job. */
export const ratesSchema = z
  .record(pattern, z.number().gt(0))
  .optional()
  .describe(`Learning-rate factors of parameters, ${patternRule}. Default: 1.`);

/** Schema of the field `weightDecays` of a job. */
export const weightDecaysSchema = z
  .record(pattern, z.number().min(0))
  .optional()
  .describe(
    `Factors of optimizer.weightDecay, ${patternRule}. Default: 1, or 0 for norms-and-biases with adamw, soap, lars and lamb.`,
  );
