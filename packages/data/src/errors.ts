import { SkeinError } from "@skein/tensor-core";
import { boundedLine } from "@skein/tensor-core/backend";

/**
 * Thrown for a data set that is absent, truncated or altered. The message names the file or folder, the found and the
 * expected value and the cure, in one line of bounded length.
 */
export class DataError extends SkeinError {
  override name = "DataError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "data", boundedLine(message), options);
  }
}
