import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import { sidesOf } from "../job/image-sides.ts";
import type { DataJob, Job, NormaliseJob, PreprocessorJob } from "../job/job.ts";

const fileName = "preprocessor_config.json";

const isNumbers = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length > 0 && value.every((each) => Number.isFinite(each));

/** Rows and columns of images as the model was trained on them; undefined where only one side is said, or none. */
const sizeIn = ({ size, crop_size: cropped }: Readonly<Record<string, unknown>>): [number, number] | undefined => {
  for (const said of [cropped, size]) {
    if (typeof said === "number") return [said, said];
    const { height, width } = (said ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof height === "number" && typeof width === "number") return [height, width];
  }
  return undefined;
};

/**
 * What `preprocessor_config.json` of a checkpoint says of the images that its model takes; undefined where there is no
 * such file.
 *
 * @throws ConfigError for a file that holds no such thing.
 */
export const readPreprocessor = (folder: string): PreprocessorJob | undefined => {
  const path = join(folder, fileName);
  let said: Readonly<Record<string, unknown>>;
  try {
    said = JSON.parse(readFileSync(path, "utf8")) as typeof said;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new ConfigError([
      `model.folder: ${path} cannot be read (${(error as Error).message.split("\n")[0]}); restore it from another copy, or remove it and give data.normalise`,
    ]);
  }
  const { do_normalize: isNormalised = true, image_mean: mean, image_std: std, do_resize: isResized = true } = said;
  const size = isResized === false ? undefined : sizeIn(said);
  if (isNormalised === false || (mean === undefined && std === undefined)) return { ...(size && { size }) };
  if (!isNumbers(mean) || !isNumbers(std) || mean.length !== std.length || std.some((each) => each <= 0))
    throw new ConfigError([
      `model.folder: ${path} has image_mean ${JSON.stringify(mean)} and image_std ${JSON.stringify(std)}, but must have as many numbers in both, deviations above 0; restore it from another copy, or remove it and give data.normalise`,
    ]);
  return { normalise: { mean, std }, ...(size && { size }) };
};

/** Images that are decoded: others may have been normalised before. */
type DecodedJob = Extract<DataJob, { readonly fit: unknown }>;
const isDecoded = (data: DataJob): data is DecodedJob => "fit" in data;

/** The same job, with images normalised as those that its model was trained on, unless it says how they are. */
export const withPreprocessor = (job: Job, { normalise }: PreprocessorJob): Job =>
  isDecoded(job.data) && job.data.normalise === undefined && normalise?.mean.length === job.data.channels
    ? { ...job, data: { ...job.data, normalise } }
    : job;

const told = ({ mean, std }: NormaliseJob): string => `mean ${mean.join(", ")}, deviation ${std.join(", ")}`;

/** What people should know of images that a pretrained model takes, a line each. */
export const preprocessorRemarks = ({ model, data }: Job): string[] => {
  if (model.kind !== "pretrained" || model.preprocessor === undefined || !isDecoded(data)) return [];
  const { normalise, size } = model.preprocessor;
  const sides = sidesOf(data.size);
  const isAsSaid = JSON.stringify(normalise) === JSON.stringify(data.normalise);
  return [
    ...(normalise === undefined
      ? []
      : [
          isAsSaid
            ? `data.normalise: as ${fileName} of model.folder says: ${told(normalise)}`
            : `data.normalise: ${data.normalise === undefined ? "none" : told(data.normalise)}, but the model was trained with ${told(normalise)}, as its ${fileName} says`,
        ]),
    ...(size === undefined || size.every((side, i) => side === sides[i])
      ? []
      : [
          `data.size: images are ${sides.join("×")}, but the model was trained on ${size.join("×")}, as its ${fileName} says`,
        ]),
  ];
};
