import { SkeinError } from "@skein/tensor-core";
import { oneLine } from "@skein/tensor-core/backend";

/**
 * A data set that is absent, truncated or altered. Names the file or folder, what was found, what was expected and the
 * cure, in one line.
 */
export class DataError extends SkeinError {
  override name = "DataError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "data", oneLine(message), options);
  }
}
