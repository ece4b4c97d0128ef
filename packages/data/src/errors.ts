import { SkeinError } from "@skein/tensor-core";
import { boundedLine } from "@skein/tensor-core/backend";

/**
 * Thrown for a data set that is missing, truncated or altered. The message is one line of limited length, and contains
 * the file or folder, the found and the expected value, and a suggested fix.
 */
export class DataError extends SkeinError {
  override name = "DataError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "data", boundedLine(message), options);
  }
}
