import { excerpt } from "@skein/tensor-core/backend";
import { PretrainedError } from "./errors.ts";
import { type Said, sidesIn, type Sides } from "./image-processor-sides.ts";
import { type KnownProcessor, processorOf } from "./image-processors.ts";

/** Filters of Pillow's, at the places of its numbers. */
const filters = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"] as const;

/**
 * How images become inputs of a model, as an image processor of Hugging Face's makes them: resized, their middle cut
 * out, brought to 0 to 1, normalised.
 */
export interface ImageProcessor {
  /** The shorter side, the longer one in proportion, or [rows, columns]. Default: images stay as large as they are. */
  readonly resize?: number | Sides | undefined;
  /** By which filter of Pillow's. */
  readonly resample?: (typeof filters)[number] | undefined;
  /** [rows, columns] of the middle that is cut out. Default: nothing is. */
  readonly crop?: Sides | undefined;
  /** Of each channel, or one for all, of pixels from 0 to 1. Default: these are what the model takes. */
  readonly normalise?: { readonly mean: readonly number[]; readonly std: readonly number[] } | undefined;
}

/** Files that say how images are prepared: of their own, or under `image_processor` beside other things. */
export const processorFiles = { own: "preprocessor_config.json", nested: "processor_config.json" } as const;

/** Steps of other processors, told by a key that is true, which would be left out. */
const missingSteps: readonly string[] = [
  "do_align_long_axis",
  "do_color_quantize",
  "do_crop_margin",
  "do_flip_channel_order",
  "do_grayscale",
  "do_pad",
  "do_thumbnail",
  "rescale_offset",
];

const cure = (path: string): string =>
  `restore ${path} from another copy, or remove it and say in the job how images are prepared: data.normalise, data.resample, and data.fit or data.resize`;

type Fault = (key: string, rule: string) => never;

/** @throws by `fault`. */
const flagIn = (said: Said, key: string, otherwise: boolean, fault: Fault): boolean => {
  const value = said[key] ?? otherwise;
  return typeof value === "boolean" ? value : fault(key, "true or false");
};

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** Means or deviations: a number stands for those of all channels. */
const numbersIn = (value: unknown): number[] | undefined => {
  const numbers: unknown = isNumber(value) ? [value] : value;
  return Array.isArray(numbers) && numbers.length > 0 && numbers.every(isNumber) ? numbers : undefined;
};

/** Whatever is beyond leaves no digits of a pixel. */
const leastFactor = 1e-6;

/** What bytes are multiplied by, over 1/255: 1 but for rare processors. */
const scaleIn = (said: Said, fault: Fault): number => {
  if (!flagIn(said, "do_rescale", true, fault)) return 255;
  const factor = said["rescale_factor"] ?? 1 / 255;
  if (!isNumber(factor) || factor < leastFactor || factor > 1 / leastFactor)
    return fault("rescale_factor", `a number from ${leastFactor} to ${1 / leastFactor}, such as 1/255`);
  // As JSON has it, 1/255 is rounded.
  return Math.abs(255 * factor - 1) < 1e-6 ? 1 : 255 * factor;
};

/** With pixels from 0 to 1 = p: (p·scale − mean) / std = (p − mean / scale) / (std / scale). */
const normaliseIn = (
  said: Said,
  known: KnownProcessor | undefined,
  fault: Fault,
  path: string,
): ImageProcessor["normalise"] => {
  const scale = scaleIn(said, fault);
  const [saidMean, saidStd] = [said["image_mean"] ?? known?.mean, said["image_std"] ?? known?.std];
  const isNormalised = flagIn(said, "do_normalize", true, fault) && (saidMean !== undefined || saidStd !== undefined);
  if (!isNormalised) return scale === 1 ? undefined : { mean: [0], std: [1 / scale] };
  const [mean, std] = [saidMean, saidStd].map((numbers) => numbersIn(numbers)?.map((each) => each / scale));
  const isSound = (numbers: readonly number[], least: number): boolean =>
    numbers.every((each) => Number.isFinite(each) && each > least);
  if (mean?.length !== std?.length || !mean || !std || !isSound(mean, -Infinity) || !isSound(std, 0))
    throw new PretrainedError(
      `${path} has image_mean ${excerpt(saidMean)} and image_std ${excerpt(saidStd)}, but must have as many numbers in both, deviations above 0; ${cure(path)}`,
    );
  return { mean, std };
};

/** From this shorter side on, ConvNeXt's processor stretches images, and cuts nothing. */
const uncutEdge = 384;

/** ConvNeXt's: the middle of a shorter side that is larger by 1 / crop_pct. */
const partIn = (
  said: Said,
  edge: number,
  { cropPart }: KnownProcessor,
  fault: Fault,
): Pick<ImageProcessor, "resize" | "crop"> => {
  if (edge >= uncutEdge) return { resize: [edge, edge] };
  const part = said["crop_pct"] ?? cropPart;
  if (!isNumber(part) || part <= 0 || part > 1) return fault("crop_pct", "a number above 0, at most 1");
  return { resize: Math.trunc(edge / part), crop: [edge, edge] };
};

const geometryIn = (
  said: Said,
  known: KnownProcessor | undefined,
  fault: Fault,
): Pick<ImageProcessor, "resize" | "resample" | "crop"> => {
  const isResized = flagIn(said, "do_resize", true, fault);
  const isCut = known?.cropPart === undefined && flagIn(said, "do_center_crop", known?.crop !== undefined, fault);
  const cropped = isCut ? sidesIn("crop_size", said["crop_size"] ?? known?.crop, true, fault) : undefined;
  const crop: Sides | undefined = typeof cropped === "number" ? fault("crop_size", "height and width") : cropped;
  const size = said["size"] ?? known?.size;
  if (!isResized || size === undefined) return crop === undefined ? {} : { crop };
  const number = said["resample"] ?? known?.resample;
  const resample = filters[number as number];
  if (number !== undefined && resample === undefined)
    return fault("resample", `a number of Pillow's: ${filters.map((name, i) => `${i} ${name}`).join(", ")}`);
  const resize = sidesIn("size", size, known?.isSquare ?? true, fault);
  const cut =
    known?.cropPart === undefined
      ? { resize, crop }
      : typeof resize === "number"
        ? partIn(said, resize, known, fault)
        : fault("size", "a number, or shortest_edge, with crop_pct");
  return { ...cut, resample };
};

/**
 * What `preprocessor_config.json` says of images.
 *
 * A factor of pixels that is not 1/255 is in mean and deviation. What a file leaves out is what its processor does by
 * itself, where that is one of ViT's, DeiT's, ConvNeXt's, CLIP's or BiT's; else it is not known.
 *
 * @param modelType of `config.json`: whose processor it is where the file does not say.
 * @param path of the file, for errors.
 * @throws PretrainedError for what such files do not hold, and for steps of processors that are not here.
 * Source: `image_processing_*.py` and `image_transforms.py` of transformers 4.
 */
export const parseImageProcessor = (said: unknown, modelType: unknown, path: string): ImageProcessor => {
  if (typeof said !== "object" || said === null || Array.isArray(said))
    throw new PretrainedError(`${path} holds ${excerpt(said)}, no object; ${cure(path)}`);
  const fields = said as Said;
  const fault: Fault = (key, rule) => {
    throw new PretrainedError(`${path}: ${key} is ${excerpt(fields[key])}, but must be ${rule}; ${cure(path)}`);
  };
  const step = missingSteps.find((key) => fields[key] === true);
  if (step !== undefined) fault(step, "false: that step is not here");
  const known = processorOf(fields, modelType);
  // each processor takes it for something else
  if (known === undefined && isNumber(fields["crop_pct"])) fault("crop_pct", "left out for this processor");
  const { resize, resample, crop } = geometryIn(fields, known, fault);
  const normalise = normaliseIn(fields, known, fault, path);
  return {
    ...(resize !== undefined && { resize }),
    ...(resample !== undefined && { resample }),
    ...(crop !== undefined && { crop }),
    ...(normalise !== undefined && { normalise }),
  };
};

const heightAndWidth = ([height, width]: Sides): object => ({ height, width });

/**
 * What `preprocessor_config.json` says for images that are prepared so, for `AutoImageProcessor`: as ViT's processor
 * where they are stretched at most, else as CLIP's, which has all steps. `parseImageProcessor` reads it back.
 *
 * @param channels of images; where mean and deviation are one for all, they are written for each.
 */
export const imageProcessorConfig = (
  { resize, resample = "bilinear", crop, normalise }: ImageProcessor,
  channels: number,
): Readonly<Record<string, unknown>> => {
  const each = (values: readonly number[]): readonly number[] =>
    values.length === 1 ? new Array<number>(channels).fill(values[0]!) : values;
  const isStretched = crop === undefined && typeof resize !== "number";
  return {
    image_processor_type: isStretched ? "ViTImageProcessor" : "CLIPImageProcessor",
    ...(channels === 3 && { do_convert_rgb: true }),
    do_resize: resize !== undefined,
    ...(resize !== undefined && {
      size: typeof resize === "number" ? { shortest_edge: resize } : heightAndWidth(resize),
      resample: filters.indexOf(resample),
    }),
    ...(!isStretched && { do_center_crop: crop !== undefined, ...(crop && { crop_size: heightAndWidth(crop) }) }),
    do_rescale: true,
    rescale_factor: 1 / 255,
    do_normalize: normalise !== undefined,
    ...(normalise !== undefined && { image_mean: each(normalise.mean), image_std: each(normalise.std) }),
  };
};
