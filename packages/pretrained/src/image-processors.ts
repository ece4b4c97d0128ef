import type { Said, Sides } from "./image-processor-sides.ts";

/** What an image processor of transformers does where its file says nothing. */
export interface KnownProcessor {
  /** Whether a number as `size` stands for both sides, or for the shorter one. */
  readonly isSquare: boolean;
  readonly size: number | Sides;
  readonly crop?: Sides;
  /** The part of the shorter side that is cut out, in place of `crop`. */
  readonly cropPart?: number;
  /** Pillow's number. */
  readonly resample: number;
  readonly mean: readonly number[];
  readonly std: readonly number[];
}

const [bilinear, bicubic] = [2, 3];
const halves = { mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5] };

/** CLIP's, and BiT's: of the images that CLIP was trained on. */
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

/** Processors that transformers takes where a file names none, by `model_type`. */
const ofModels: ReadonlyMap<unknown, string> = new Map([
  ["vit", "ViT"],
  ["resnet", "ConvNext"],
]);

/** Names of all ages: `ViTFeatureExtractor`, `ViTImageProcessor`, and with what computes behind it. */
const nameIn = (type: unknown): string | undefined =>
  typeof type === "string" ? /^(\w+?)(?:FeatureExtractor|ImageProcessor)(?:Fast|Pil)?$/.exec(type)?.[1] : undefined;

/** The processor of a file; undefined where it is another one, of which only what the file says is known. */
export const processorOf = (said: Said, modelType: unknown): KnownProcessor | undefined => {
  const type = said["image_processor_type"] ?? said["feature_extractor_type"];
  return processors.get(nameIn(type) ?? (type === undefined ? (ofModels.get(modelType) ?? "") : ""));
};
