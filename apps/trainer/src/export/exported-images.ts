import { type DataJob, type DecodedJob, decodingOf, isDecoded, type NormaliseJob, sidesOf } from "@skein/job/node";
import type { ImageProcessor } from "@skein/pretrained";
import type { TensorSpec } from "@skein/tensor-core";

/** Image preprocessing of a run, in the format that other programs read. */
export interface ExportedImages {
  /**
   * Configuration of an image processor that is equivalent to the run's preprocessing, at least approximately.
   * Undefined: no image processor is equivalent.
   */
  readonly processor?: ImageProcessor;
  /** Remarks for the user. */
  readonly remarks: readonly string[];
}

type Sides = readonly [number, number];

const same = (one: Sides, other: Sides): boolean => one.every((side, i) => side === other[i]);

/**
 * Returns the resize and crop settings of an image processor for the run's sample size. Undefined if no settings are
 * equivalent to the run's preprocessing.
 */
const geometryOf = (job: DecodedJob): Pick<ImageProcessor, "resize" | "crop"> | undefined => {
  const { fit, resize } = decodingOf(job);
  const size = sidesOf(job.size);
  const decoded = sidesOf(job.decodeSize ?? job.size);
  if (typeof resize === "number") return { resize, crop: size };
  const stretched = resize ?? (fit === "stretch" ? decoded : undefined);
  if (stretched !== undefined) return { resize: stretched, ...(!same(stretched, size) && { crop: size }) };
  return fit === "cover" && decoded[0] === decoded[1] ? { resize: decoded[0], crop: size } : undefined;
};

const ofDecoded = (job: DecodedJob): ExportedImages => {
  const { fit, resize, resample } = decodingOf(job);
  const geometry = geometryOf(job);
  if (geometry === undefined)
    return {
      remarks: [
        `no preprocessor_config.json was written: no image processor of transformers is equivalent to data.fit ${fit} with data.size ${sidesOf(job.size).join("×")}; prepare images for this model as the run did, or train with data.resize`,
      ],
    };
  // The JPEG decoder also resizes with `bilinear`; other image formats are rare.
  const isByFilter = resample !== undefined || resize !== undefined || job.decoder === "napi-rs";
  const differing = [
    ...(resize === undefined && fit === "cover" ? ["data.fit cover crops images before resizing them"] : []),
    ...(isByFilter ? [] : ["sharp's filter is nearly Pillow's lanczos"]),
  ];
  return {
    processor: {
      ...geometry,
      resample: resample ?? (isByFilter ? "bilinear" : "lanczos"),
      ...(job.normalise && { normalise: job.normalise }),
    },
    remarks:
      differing.length === 0
        ? []
        : [
            `preprocessor_config.json gives nearly the pixels of the run: ${differing.join(", and ")}; for identical pixels, train with data.resize and data.resample`,
          ],
  };
};

/**
 * Converts the mean and standard deviation of byte values (0 to 255) to the mean and standard deviation of values
 * scaled by 1/255, which image processors use.
 */
const unscaled = ({ mean, std }: NormaliseJob): NormaliseJob => ({
  mean: mean.map((each) => each / 255),
  std: std.map((each) => each / 255),
});

/**
 * Returns the configuration with which `AutoImageProcessor` of transformers preprocesses images as the run did.
 * Undefined if Skein did not decode images for the run.
 *
 * @param inputs spec of a sample's inputs.
 */
export const exportedImages = (data: DataJob, inputs: TensorSpec | undefined): ExportedImages | undefined => {
  if (isDecoded(data)) return ofDecoded(data);
  const isOfImages = ["mnist", "fashion-mnist", "idx", "numpy"].includes(data.kind);
  if (!isOfImages || inputs?.shape.length !== 3) return undefined;
  const normalise = "normalise" in data ? data.normalise : undefined;
  const ofPixels = inputs.dtype === "u8" ? normalise : unscaled(normalise ?? { mean: [0], std: [1] });
  return { processor: ofPixels === undefined ? {} : { normalise: ofPixels }, remarks: [] };
};
