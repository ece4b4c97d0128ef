import { SkeinError } from "@skein/tensor-core";
import { oneLine } from "@skein/tensor-core/backend";

/**
 * A folder, configuration or set of tensors that is no checkpoint of a model that we have. Names what was found, what
 * was expected and the cure, in one line.
 */
export class PretrainedError extends SkeinError {
  override name = "PretrainedError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "pretrained", oneLine(message), options);
  }
}
