import { excerpt } from "@skein/tensor-core/backend";
import { PretrainedError } from "./errors.ts";
import { type ProcessorFields, sidesIn, type Sides } from "./image-processor-sides.ts";
import { type KnownProcessor, processorOf } from "./image-processors.ts";

/** Names of Pillow's resampling filters, indexed by Pillow's filter numbers. */
const filters = ["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"] as const;

/**
 * Image preprocessing of a model, as in a Hugging Face image processor: resize, center crop, scale to 0…1, normalize.
 */
export interface ImageProcessor {
  /**
   * Size after resizing in pixels: length of the shorter side, which preserves the aspect ratio, or [rows, columns].
   * Absent: no resizing.
   */
  readonly resize?: number | Sides | undefined;
  /** Pillow's resampling filter for resizing. Absent: bilinear. */
  readonly resample?: (typeof filters)[number] | undefined;
  /** Size of the center crop, [rows, columns]. Absent: no crop. */
  readonly crop?: Sides | undefined;
  /**
   * Mean and standard deviation of pixels from 0 to 1, one per channel or one for all channels. Absent: no
   * normalization.
   */
  readonly normalise?: { readonly mean: readonly number[]; readonly std: readonly number[] } | undefined;
}

/**
 * Names of the files that contain the fields of an image processor: at the root, or under the key `image_processor`.
 */
export const processorFiles = { own: "preprocessor_config.json", nested: "processor_config.json" } as const;

/** Keys of unsupported processing steps of other processors. A file is rejected if one of these keys is true. */
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
  `restore ${path} from another copy, or remove it and set the preprocessing in the job: data.normalise, data.resample, and data.fit or data.resize`;

type Fault = (key: string, rule: string) => never;

/** Reads a boolean field. @throws the error of `fault`. */
const flagIn = (fields: ProcessorFields, key: string, otherwise: boolean, fault: Fault): boolean => {
  const value = fields[key] ?? otherwise;
  return typeof value === "boolean" ? value : fault(key, "true or false");
};

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** Parses means or standard deviations: one number for all channels, or a list. */
const numbersIn = (value: unknown): number[] | undefined => {
  const numbers: unknown = isNumber(value) ? [value] : value;
  return Array.isArray(numbers) && numbers.length > 0 && numbers.every(isNumber) ? numbers : undefined;
};

/** Lower limit of the rescale factor. A smaller factor would remove all significant digits of pixels. */
const minFactor = 1e-6;

/** Returns the rescale factor divided by 1/255. The result is 1 except for rare processors. */
const scaleIn = (fields: ProcessorFields, fault: Fault): number => {
  if (!flagIn(fields, "do_rescale", true, fault)) return 255;
  const factor = fields["rescale_factor"] ?? 1 / 255;
  if (!isNumber(factor) || factor < minFactor || factor > 1 / minFactor)
    return fault("rescale_factor", `a number from ${minFactor} to ${1 / minFactor}, such as 1/255`);
  // JSON contains a rounded value of 1/255.
  return Math.abs(255 * factor - 1) < 1e-6 ? 1 : 255 * factor;
};

/**
 * Returns mean and standard deviation. For pixels p from 0 to 1: (p·scale − mean) / std = (p − mean / scale) / (std /
 * scale).
 */
const normaliseIn = (
  fields: ProcessorFields,
  known: KnownProcessor | undefined,
  fault: Fault,
  path: string,
): ImageProcessor["normalise"] => {
  const scale = scaleIn(fields, fault);
  const [rawMean, rawStd] = [fields["image_mean"] ?? known?.mean, fields["image_std"] ?? known?.std];
  const isNormalised = flagIn(fields, "do_normalize", true, fault) && (rawMean !== undefined || rawStd !== undefined);
  if (!isNormalised) return scale === 1 ? undefined : { mean: [0], std: [1 / scale] };
  const [mean, std] = [rawMean, rawStd].map((numbers) => numbersIn(numbers)?.map((each) => each / scale));
  const areValid = (numbers: readonly number[], bound: number): boolean =>
    numbers.every((each) => Number.isFinite(each) && each > bound);
  if (mean?.length !== std?.length || !mean || !std || !areValid(mean, -Infinity) || !areValid(std, 0))
    throw new PretrainedError(
      `${path} has image_mean ${excerpt(rawMean)} and image_std ${excerpt(rawStd)}, but both must have the same number of values, with deviations above 0; ${cure(path)}`,
    );
  return { mean, std };
};

/** Minimum length of the shorter side at which ConvNeXt's processor stretches images instead of cropping them. */
const uncutEdge = 384;

/**
 * Returns ConvNeXt's resize and crop: the shorter side is resized to `edge` / `crop_pct`, and a center square of `edge`
 * pixels is cropped.
 */
const partIn = (
  fields: ProcessorFields,
  edge: number,
  { cropPart }: KnownProcessor,
  fault: Fault,
): Pick<ImageProcessor, "resize" | "crop"> => {
  if (edge >= uncutEdge) return { resize: [edge, edge] };
  const part = fields["crop_pct"] ?? cropPart;
  if (!isNumber(part) || part <= 0 || part > 1) return fault("crop_pct", "a number above 0, at most 1");
  return { resize: Math.trunc(edge / part), crop: [edge, edge] };
};

const geometryIn = (
  fields: ProcessorFields,
  known: KnownProcessor | undefined,
  fault: Fault,
): Pick<ImageProcessor, "resize" | "resample" | "crop"> => {
  const isResized = flagIn(fields, "do_resize", true, fault);
  const isCut = known?.cropPart === undefined && flagIn(fields, "do_center_crop", known?.crop !== undefined, fault);
  const cropped = isCut ? sidesIn("crop_size", fields["crop_size"] ?? known?.crop, true, fault) : undefined;
  const crop: Sides | undefined = typeof cropped === "number" ? fault("crop_size", "height and width") : cropped;
  const size = fields["size"] ?? known?.size;
  if (!isResized || size === undefined) return crop === undefined ? {} : { crop };
  const number = fields["resample"] ?? known?.resample;
  const resample = filters[number as number];
  if (number !== undefined && resample === undefined)
    return fault("resample", `a number of Pillow's: ${filters.map((name, i) => `${i} ${name}`).join(", ")}`);
  const resize = sidesIn("size", size, known?.isSquare ?? true, fault);
  const cut =
    known?.cropPart === undefined
      ? { resize, crop }
      : typeof resize === "number"
        ? partIn(fields, resize, known, fault)
        : fault("size", "a number, or shortest_edge, with crop_pct");
  return { ...cut, resample };
};

/**
 * Parses `preprocessor_config.json`.
 *
 * A rescale factor other than 1/255 is folded into mean and deviation. Missing fields have the processor's defaults,
 * which are known for ViT, DeiT, ConvNeXt, CLIP and BiT.
 *
 * Source: `image_processing_*.py` and `image_transforms.py` of transformers 4.
 *
 * @param modelType Value of `model_type` in `config.json`, which determines the processor if the file does not name a
 * processor.
 * @param path Path of the file, for errors.
 * @throws PretrainedError if a field is invalid, or a preprocessing step is not supported.
 */
export const parseImageProcessor = (value: unknown, modelType: unknown, path: string): ImageProcessor => {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new PretrainedError(`${path} holds ${excerpt(value)} instead of an object; ${cure(path)}`);
  const fields = value as ProcessorFields;
  const fault: Fault = (key, rule) => {
    throw new PretrainedError(`${path}: ${key} is ${excerpt(fields[key])}, but must be ${rule}; ${cure(path)}`);
  };
  const step = missingSteps.find((key) => fields[key] === true);
  if (step !== undefined) fault(step, "false: this step is not supported");
  const known = processorOf(fields, modelType);
  // the meaning of crop_pct differs between processors
  if (known === undefined && isNumber(fields["crop_pct"])) fault("crop_pct", "omitted for this processor");
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
 * Returns the content of `preprocessor_config.json` for `AutoImageProcessor`. The file names ViT's processor if images
 * are only stretched and not cropped, otherwise CLIP's processor, which supports all steps. `parseImageProcessor` can
 * parse the result.
 *
 * @param channels Number of image channels. A single mean or deviation is repeated for each channel.
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
