import { SkeinError } from "@skein/tensor-core";

/**
 * A folder, configuration or set of tensors that is no checkpoint of a model that we have. Names what was found, what
 * was expected and the cure.
 */
export class PretrainedError extends SkeinError {
  override name = "PretrainedError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "pretrained", message, options);
  }
}
