import {
  dataSchema,
  type DecodedJob,
  decodingOf,
  isDecoded,
  type Job,
  maxSide,
  type NormaliseJob,
  type PreprocessorJob,
  sidesOf,
} from "@skein/job/node";
import { type FoundImageProcessor, loadImageProcessor } from "@skein/pretrained/node";

const preprocessorOf = ({ file, processor }: FoundImageProcessor): PreprocessorJob => {
  const { resize, resample, crop, normalise } = processor;
  const size = crop ?? (typeof resize === "number" ? undefined : resize);
  return {
    file,
    ...(normalise && { normalise }),
    ...(size && { size }),
    ...(resize !== undefined && { resize }),
    ...(resample && { resample }),
  };
};

/**
 * Reads the image preprocessing of a checkpoint. Undefined: the checkpoint specifies no preprocessing.
 *
 * @param modelType Value of `model_type` in config.json.
 * @throws PretrainedError if the file has another format, or the preprocessing is not supported.
 */
export const readPreprocessor = async (folder: string, modelType: unknown): Promise<PreprocessorJob | undefined> => {
  const found = await loadImageProcessor(folder, modelType);
  return found && preprocessorOf(found);
};

type Geometry = Pick<DecodedJob, "fit" | "resize">;

const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/**
 * Returns the resize settings for a job whose image size differs from the model's image size. The ratio of resized size
 * to image size is the same as in the model's preprocessing. Undefined if the model's resize settings are unknown, or
 * if the resized image would be too small for the job or larger than the maximum.
 */
const geometryFor = (
  { resize, size: modelSize }: PreprocessorJob,
  { size, decodeSize = size }: DecodedJob,
): Geometry | undefined => {
  if (resize === undefined) return undefined;
  if (typeof resize !== "number" && same(resize, modelSize)) return { fit: "stretch" };
  const [wanted, least] = [sidesOf(size), sidesOf(decodeSize)];
  const reference = modelSize ?? sidesOf(resize);
  const scale = Math.max(wanted[0] / reference[0], wanted[1] / reference[1]);
  // If one size divides the other, the product is an integer except for rounding errors.
  const scaled = (side: number): number => Math.floor(side * scale + 1e-6);
  const result = typeof resize === "number" ? scaled(resize) : ([scaled(resize[0]), scaled(resize[1])] as const);
  return sidesOf(result).every((side, i) => side >= least[i]! && side <= maxSide) ? { resize: result } : undefined;
};

/** Whether the number of means and deviations equals the number of image channels. */
const fitsChannels = ({ mean }: NormaliseJob, channels: number): boolean =>
  mean.length === 1 || mean.length === channels;

/** Adds the preprocessing of the model's training images to a job, unless the job specifies preprocessing. */
export const withPreprocessor = (job: Job, preprocessor: PreprocessorJob): Job => {
  const { data } = job;
  if (!isDecoded(data)) return job;
  const { normalise, resample } = preprocessor;
  const geometry = data.fit === undefined && data.resize === undefined ? geometryFor(preprocessor, data) : undefined;
  const settings = {
    ...geometry,
    ...(data.resample === undefined && resample && { resample }),
    ...(data.normalise === undefined && normalise && fitsChannels(normalise, data.channels) && { normalise }),
  };
  // The job is hashed as text, so its keys must be in the order of the schema, which is also the order after the job is
  // read again.
  return { ...job, data: dataSchema.parse({ ...data, ...settings }) };
};

const formatStatistics = ({ mean, std }: NormaliseJob): string =>
  `mean ${mean.join(", ")}, deviation ${std.join(", ")}`;

const formatGeometry = ({ fit, resize }: Geometry): [key: string, value: string] =>
  resize === undefined ? ["fit", decodingOf({ fit }).fit] : ["resize", [resize].flat().join("×")];

/** Describes the preprocessing of the images on which a model was trained. */
const describeTraining = ({ resize, size }: PreprocessorJob): string => {
  const middle = size === undefined || same(size, resize) ? "" : `, and cut to their middle, ${size.join("×")}`;
  if (resize === undefined) return `images as large as they were${middle}`;
  return typeof resize === "number"
    ? `images whose shorter side was ${resize}${middle}`
    : `images stretched to ${resize.join("×")}${middle}`;
};

/**
 * Returns remarks for the user about the images of a pretrained model: a line with the settings that match the model's
 * preprocessing, and a line per difference.
 */
export const preprocessorRemarks = ({ model, data }: Job): string[] => {
  if (model.kind !== "pretrained" || model.preprocessor === undefined || !isDecoded(data)) return [];
  const { file = "preprocessor_config.json", normalise, size, resize, resample } = model.preprocessor;
  const geometry = geometryFor(model.preprocessor, data);
  const own: Geometry = data.resize === undefined ? { fit: decodingOf(data).fit } : { resize: data.resize };
  const matching: string[] = [];
  const differing: string[] = [];
  const compare = (isMatching: boolean, key: string, ours: string, theirs: string): number =>
    isMatching
      ? matching.push(`data.${key} ${ours}`)
      : differing.push(`data.${key}: ${ours}, but the model was trained ${theirs}, as its ${file} says`);
  if (normalise !== undefined)
    compare(
      same(normalise, data.normalise),
      "normalise",
      data.normalise === undefined ? "none" : formatStatistics(data.normalise),
      `with ${formatStatistics(normalise)}`,
    );
  // jobs of older versions record only a size
  if (model.preprocessor.file !== undefined && (resize !== undefined || size !== undefined))
    compare(same(geometry, own), ...formatGeometry(own), `on ${describeTraining(model.preprocessor)}`);
  if (resample !== undefined)
    compare(same(resample, data.resample), "resample", data.resample ?? "decoder", `on images resized by ${resample}`);
  const sides = sidesOf(data.size);
  if (size !== undefined && !same(size, sides))
    compare(false, "size", `images are ${sides.join("×")}`, `on ${size.join("×")}`);
  return [...(matching.length === 0 ? [] : [`as in ${file} of model.folder: ${matching.join("; ")}`]), ...differing];
};
