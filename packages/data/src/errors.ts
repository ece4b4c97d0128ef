import { SkeinError } from "@skein/tensor-core";

/**
 * A data set that is absent, truncated or altered. Names the file or folder, what was found, what was expected and the
 * cure.
 */
export class DataError extends SkeinError {
  override name = "DataError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "data", message, options);
  }
}
