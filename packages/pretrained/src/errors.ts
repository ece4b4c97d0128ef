import { SkeinError } from "@skein/tensor-core";
import { boundedLine } from "@skein/tensor-core/backend";

/**
 * Thrown for a folder, configuration or set of tensors that is not a checkpoint of a supported model. The message names
 * the found and the expected value and the cure, in one line of bounded length.
 */
export class PretrainedError extends SkeinError {
  override name = "PretrainedError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "pretrained", boundedLine(message), options);
  }
}
