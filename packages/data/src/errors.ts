import { SkeinError } from "@skein/tensor-core";

/**
 * A data set that is absent, truncated or altered. Names the file or folder, what was found, what was expected and the
 * cure.
 *
 * Names of others' files may hold line breaks and commands to terminals, which become question marks.
 */
export class DataError extends SkeinError {
  override name = "DataError";

  constructor(message: string, options?: ErrorOptions) {
    super("user", "data", message.replaceAll(/\p{C}/gu, "?"), options);
  }
}
