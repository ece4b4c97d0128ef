import { join } from "node:path";
import { type ImageProcessor, parseImageProcessor, processorFiles } from "../image-processor.ts";
import { parseJson } from "../parse-json.ts";
import { readJsonText } from "./open-file.ts";

/** @throws PretrainedError where it is there, but cannot be read. */
const readIfThere = (path: string): unknown => {
  let text: string;
  try {
    text = readJsonText(path, "see that it is a file that may be read");
  } catch (error) {
    if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === "ENOENT") return undefined;
    throw error;
  }
  return parseJson(text, path);
};

/** How a checkpoint wants images prepared, and the file that says so. */
export interface FoundImageProcessor {
  /** Its name, in the folder. */
  readonly file: string;
  readonly processor: ImageProcessor;
}

/**
 * How images become inputs of the model of a folder: as `image_processor` of `processor_config.json` says, where that
 * is there, else `preprocessor_config.json`. Undefined where neither is.
 *
 * @param modelType of its `config.json`.
 * @throws PretrainedError for files that hold no such thing, and for steps that are not here.
 */
export const loadImageProcessor = async (
  folder: string,
  modelType: unknown,
): Promise<FoundImageProcessor | undefined> => {
  const { own, nested } = processorFiles;
  const whole = readIfThere(join(folder, nested));
  const part = (whole as { readonly image_processor?: unknown } | null | undefined)?.image_processor;
  const [file, said] = part === undefined || part === null ? [own, readIfThere(join(folder, own))] : [nested, part];
  if (said === undefined) return undefined;
  return { file, processor: parseImageProcessor(said, modelType, join(folder, file)) };
};
