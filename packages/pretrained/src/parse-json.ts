import { PretrainedError } from "./errors.ts";

/** Parses JSON. @throws PretrainedError that contains the path of the file. */
export const parseJson = (text: string, path: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new PretrainedError(`${path} is not valid JSON (${(cause as Error).message}); restore it from another copy`, {
      cause,
    });
  }
};
