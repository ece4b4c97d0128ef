import { SkeinError } from "@skein/tensor-core";
import { boundedLine } from "@skein/tensor-core/backend";

/**
 * Thrown for a folder, configuration or set of tensors that is not a checkpoint of a supported model. The message is
 * one line of limited length, and contains the found and the expected value and a suggested fix.
 */
export class PretrainedError extends SkeinError {
  override name = "PretrainedError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "pretrained", boundedLine(message), options);
  }
}
