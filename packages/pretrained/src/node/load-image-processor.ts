import { join } from "node:path";
import { type ImageProcessor, parseImageProcessor, processorFiles } from "../image-processor.ts";
import { parseJson } from "../parse-json.ts";
import { readJsonText } from "./open-file.ts";

/**
 * Reads a JSON file. Returns undefined if the file does not exist.
 *
 * @throws PretrainedError if the file exists but cannot be read.
 */
const readIfPresent = (path: string): unknown => {
  let text: string;
  try {
    text = readJsonText(path, "check that it is a readable file");
  } catch (error) {
    if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === "ENOENT") return undefined;
    throw error;
  }
  return parseJson(text, path);
};

/** Image processor of a checkpoint, and the file that defines the processor. */
export interface FoundImageProcessor {
  /** Name of the file in the folder of the checkpoint. */
  readonly file: string;
  readonly processor: ImageProcessor;
}

/**
 * Loads the image processor of the model in a folder: `image_processor` of `processor_config.json` if present,
 * otherwise `preprocessor_config.json`. Returns undefined if neither file exists.
 *
 * @param modelType Value of `model_type` in the folder's `config.json`.
 * @throws PretrainedError if the file has no valid image processor, or a preprocessing step is not supported.
 */
export const loadImageProcessor = async (
  folder: string,
  modelType: unknown,
): Promise<FoundImageProcessor | undefined> => {
  const { own, nested } = processorFiles;
  const whole = readIfPresent(join(folder, nested));
  const part = (whole as { readonly image_processor?: unknown } | null | undefined)?.image_processor;
  const [file, fields] = part === undefined || part === null ? [own, readIfPresent(join(folder, own))] : [nested, part];
  if (fields === undefined) return undefined;
  return { file, processor: parseImageProcessor(fields, modelType, join(folder, file)) };
};
