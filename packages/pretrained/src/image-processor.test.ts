import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ImageProcessor, imageProcessorConfig, parseImageProcessor } from "./image-processor.ts";

const read = (fields: unknown, modelType: unknown = "vit"): ImageProcessor =>
  parseImageProcessor(fields, modelType, "folder/preprocessor_config.json");

const imageNet = { image_mean: [0.485, 0.456, 0.406], image_std: [0.229, 0.224, 0.225] };
const normalise = { mean: imageNet.image_mean, std: imageNet.image_std };

describe("configuration files", () => {
  test("in the current format: every field", () => {
    const size = { height: 224, width: 192 };
    const fields = { ...imageNet, image_processor_type: "ViTImageProcessorFast", resample: 3, size };
    expect(read({ ...fields, do_resize: true, do_rescale: true, rescale_factor: 0.003_921_568_627_450_98 })).toEqual({
      resize: [224, 192],
      resample: "bicubic",
      normalise,
    });
  });

  test("in the old format: sizes are numbers, with different meanings for ViT, ResNet and DeiT", () => {
    const old = { ...imageNet, do_normalize: true, do_resize: true, resample: 3 };
    const both = { resample: "bicubic", normalise };
    expect(read({ ...old, feature_extractor_type: "ViTFeatureExtractor", size: 224 })).toEqual({
      ...both,
      resize: [224, 224],
    });
    expect(read({ ...old, feature_extractor_type: "ConvNextFeatureExtractor", size: 224, crop_pct: 0.875 })).toEqual({
      ...both,
      resize: 256,
      crop: [224, 224],
    });
    const deit = { ...old, feature_extractor_type: "DeiTFeatureExtractor", size: 256, crop_size: 224 };
    expect(read({ ...deit, do_center_crop: true })).toEqual({ ...both, resize: [256, 256], crop: [224, 224] });
    expect(read({ ...deit, do_center_crop: false })).toEqual({ ...both, resize: [256, 256] });
  });

  test("ConvNeXt's processor crops only below 384, an integer number of pixels, and is the default of ResNet", () => {
    const cut = (fields: object): ImageProcessor => read({ ...fields, do_normalize: false }, "resnet");
    expect(cut({})).toEqual({ resize: [384, 384], resample: "bicubic" });
    expect(cut({ size: { shortest_edge: 383 } })).toMatchObject({ resize: 437, crop: [383, 383] });
    expect(cut({ size: 200, crop_pct: 0.9 })).toMatchObject({ resize: 222, crop: [200, 200] });
    expect(cut({ do_resize: false })).toEqual({});
  });

  test("missing fields have the defaults of the processor; defaults of an unknown processor are unknown", () => {
    expect(read({})).toEqual({
      resize: [224, 224],
      resample: "bilinear",
      normalise: { mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5] },
    });
    expect(read({ image_processor_type: "BitImageProcessor" })).toMatchObject({ resize: 224, crop: [224, 224] });
    expect(read({ image_processor_type: "MyOwnProcessor" })).toEqual({});
    expect(read({ image_processor_type: "MyOwnProcessor", size: { shortest_edge: 9 }, resample: 4 })).toEqual({
      resize: 9,
      resample: "box",
    });
  });
});

describe("pixels", () => {
  test("rescaled by another factor, or not at all, are normalised as by transformers, within rounding", () => {
    const number = fc.double({ min: 0.01, max: 4, noNaN: true });
    fc.assert(
      fc.property(fc.option(number), fc.option(fc.tuple(number, number)), fc.nat(255), (factor, given, byte) => {
        const fields = {
          ...(factor === null ? { do_rescale: false } : { rescale_factor: factor }),
          ...(given === null ? { do_normalize: false } : { image_mean: given[0], image_std: given[1] }),
        };
        const [theirMean, theirStd] = given ?? [0, 1];
        const theirs = (byte * (factor ?? 1) - theirMean) / theirStd;
        const { mean, std } = read(fields).normalise ?? { mean: [0], std: [1] };
        const ours = (byte / 255 - mean[0]!) / std[0]!;
        expect(Math.abs(ours - theirs)).toBeLessThan(1e-9 * (1 + Math.abs(theirs) + 255 / theirStd));
      }),
    );
  });

  test("that are only scaled to [0, 1] are not normalised", () => {
    expect(read({ do_normalize: false }).normalise).toBeUndefined();
    expect(read({ do_normalize: false, do_rescale: false }).normalise).toEqual({ mean: [0], std: [1 / 255] });
  });
});

test("every written field is read back", () => {
  const side = fc.integer({ min: 1, max: 999 });
  const sides = fc.tuple(side, side);
  const maybe = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(of, { nil: undefined });
  const three = (least: number): fc.Arbitrary<number[]> =>
    fc.array(
      fc.double({ min: least, max: 9, noNaN: true }).filter((number) => !Object.is(number, -0)),
      {
        minLength: 3,
        maxLength: 3,
      },
    );
  const resized = fc.record({
    resize: fc.oneof(side, sides),
    resample: fc.constantFrom("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming" as const),
  });
  const processor = fc
    .tuple(maybe(resized), maybe(sides), maybe(fc.record({ mean: three(-9), std: three(0.001) })))
    .map(
      ([size, crop, normal]) =>
        ({ ...size, ...(crop && { crop }), ...(normal && { normalise: normal }) }) as ImageProcessor,
    );
  fc.assert(
    fc.property(processor, (one) => {
      expect(read(JSON.parse(JSON.stringify(imageProcessorConfig(one, 3))), "resnet")).toEqual(one);
    }),
  );
});

test("a single number for all channels is written once per channel, as transformers requires", () => {
  const config = imageProcessorConfig({ normalise: { mean: [0], std: [1] } }, 3);
  expect([config["image_mean"], config["image_std"]]).toEqual([
    [0, 0, 0],
    [1, 1, 1],
  ]);
});

test.each([
  [[], /holds \[\] instead of an object/],
  [{ resample: 7 }, /resample is 7, but must be a number of Pillow's: 0 nearest, 1 lanczos, 2 bilinear/],
  [{ size: 0 }, /size is 0, but must be one or two positive integers/],
  [{ size: { height: 3 } }, /size is .*height.*, but must be/],
  [{ size: { shortest_edge: 3, longest_edge: 9 } }, /size is .*, but must be/],
  [{ do_center_crop: true }, /crop_size is nothing, but must be/],
  [{ do_resize: "yes" }, /do_resize is "yes", but must be true or false/],
  [{ rescale_factor: 0 }, /rescale_factor is 0, but must be a number from 0\.000001 to 1000000/],
  [{ rescale_factor: 1e-320 }, /rescale_factor is .*, but must be a number from/],
  [{ image_std: 5e-324, image_mean: 0, do_rescale: false }, /deviations above 0/],
  [{ image_mean: [0.5, 0.5], image_std: [1, 1, 1] }, /the same number of values/],
  [{ image_std: [1, 0, 1] }, /deviations above 0/],
  [{ do_flip_channel_order: true }, /do_flip_channel_order is true, but must be false: this step is not supported/],
  [{ image_processor_type: "ConvNextImageProcessor", size: 9, crop_pct: 2 }, /crop_pct is 2, but must be/],
  [{ image_processor_type: "PoolFormerImageProcessor", crop_pct: 0.9 }, /crop_pct is 0\.9, but must be omitted/],
])("%j is rejected in one line, with the cure", (fields, message) => {
  let told = "";
  try {
    read(fields);
  } catch (error) {
    told = (error as Error).message;
  }
  expect(told).toMatch(message);
  expect(told).toMatch(/remove it and set the preprocessing in the job/);
  expect(told).not.toContain("\n");
});
