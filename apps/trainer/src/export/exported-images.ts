import type { ImageProcessor } from "@skein/pretrained";
import type { TensorSpec } from "@skein/tensor-core";
import { decodingOf, isDecoded } from "../job/image-decoding.ts";
import { sidesOf } from "../job/image-sides.ts";
import type { DataJob, DecodedJob, NormaliseJob } from "../job/job.ts";

/** How images of a run became inputs of its model, for others. */
export interface ExportedImages {
  /** Undefined where no image processor does the same, or nearly. */
  readonly processor?: ImageProcessor;
  /** What people should know of it. */
  readonly remarks: readonly string[];
}

type Sides = readonly [number, number];

const same = (one: Sides, other: Sides): boolean => one.every((side, i) => side === other[i]);

/** The way to the size of samples; undefined where image processors have none like it. */
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
        `no preprocessor_config.json was written: no image processor of transformers does what data.fit ${fit} does with data.size ${sidesOf(job.size).join("×")}; prepare images for this model as the run did, or train with data.resize`,
      ],
    };
  // what decodes JPEGs resizes them by `bilinear`, too, and of other images there are few
  const isByFilter = resample !== undefined || resize !== undefined || job.decoder === "napi-rs";
  const differing = [
    ...(resize === undefined && fit === "cover" ? ["data.fit cover cuts images before it resizes them"] : []),
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
            `preprocessor_config.json makes nearly the pixels of the run: ${differing.join(", and ")}; for the same, train with data.resize and data.resample`,
          ],
  };
};

/** Of numbers that are not scaled, as a processor says it that scales bytes by 1/255. */
const unscaled = ({ mean, std }: NormaliseJob): NormaliseJob => ({
  mean: mean.map((each) => each / 255),
  std: std.map((each) => each / 255),
});

/**
 * How `AutoImageProcessor` of transformers makes inputs of images as the run made them; undefined for data that are not
 * images of ours.
 *
 * @param inputs the spec of a sample.
 */
export const exportedImages = (data: DataJob, inputs: TensorSpec | undefined): ExportedImages | undefined => {
  if (isDecoded(data)) return ofDecoded(data);
  const isOfImages = ["mnist", "fashion-mnist", "idx", "numpy"].includes(data.kind);
  if (!isOfImages || inputs?.shape.length !== 3) return undefined;
  const normalise = "normalise" in data ? data.normalise : undefined;
  const ofPixels = inputs.dtype === "u8" ? normalise : unscaled(normalise ?? { mean: [0], std: [1] });
  return { processor: ofPixels === undefined ? {} : { normalise: ofPixels }, remarks: [] };
};
