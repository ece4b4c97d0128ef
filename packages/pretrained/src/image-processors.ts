import type { ProcessorFields, Sides } from "./image-processor-sides.ts";

/** Default values of a transformers image processor, for fields missing in its file. */
export interface KnownProcessor {
  /** Whether a single number in `size` sets the length of both sides. If false, the number sets the shorter side. */
  readonly isSquare: boolean;
  readonly size: number | Sides;
  readonly crop?: Sides;
  /** Crop size as a fraction of the shorter side. Replaces `crop`. */
  readonly cropPart?: number;
  /** Number of the resampling filter in Pillow. */
  readonly resample: number;
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

const [bilinear, bicubic] = [2, 3];
const halves = { mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5] };

/** Defaults of the CLIP and BiT processors, with the statistics of CLIP's training images. */
const clip: KnownProcessor = {
  isSquare: false,
  size: 224,
  crop: [224, 224],
  resample: bicubic,
  mean: [0.481_454_66, 0.457_827_5, 0.408_210_73],
  std: [0.268_629_54, 0.261_302_58, 0.275_777_11],
};

const processors: ReadonlyMap<string, KnownProcessor> = new Map<string, KnownProcessor>([
  ["ViT", { isSquare: true, size: [224, 224], resample: bilinear, ...halves }],
  ["DeiT", { isSquare: true, size: [256, 256], crop: [224, 224], resample: bicubic, ...halves }],
  ["ConvNext", { isSquare: false, size: 384, cropPart: 224 / 256, resample: bicubic, ...halves }],
  ["CLIP", clip],
  ["Bit", clip],
]);

/** Image processor names in transformers, by `model_type`, for files that do not name a processor. */
const defaultProcessors: ReadonlyMap<unknown, string> = new Map([
  ["vit", "ViT"],
  ["resnet", "ConvNext"],
]);

/**
 * Returns the image processor name in a class name of any version: `ViTFeatureExtractor`, or `ViTImageProcessor` with
 * or without a suffix for the implementation.
 */
const nameIn = (type: unknown): string | undefined =>
  typeof type === "string" ? /^(\w+?)(?:FeatureExtractor|ImageProcessor)(?:Fast|Pil)?$/.exec(type)?.[1] : undefined;

/**
 * Returns the image processor type named in a preprocessing file, or the type for `modelType` if the file names no
 * type, with the default values of its fields. Undefined if Skein does not know the defaults of this type.
 */
export const processorOf = (fields: ProcessorFields, modelType: unknown): KnownProcessor | undefined => {
  const type = fields["image_processor_type"] ?? fields["feature_extractor_type"];
  return processors.get(nameIn(type) ?? (type === undefined ? (defaultProcessors.get(modelType) ?? "") : ""));
};
