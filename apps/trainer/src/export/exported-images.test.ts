import { checkJob, type DataJob } from "@skein/job/node";
import { expect, test } from "vitest";
import { exportedImages } from "./exported-images.ts";

const dataOf = (data: object): DataJob =>
  checkJob(
    {
      name: "vit",
      batch: 2,
      steps: 1,
      data,
      model: { kind: "cnn" },
      optimizer: { kind: "sgd" },
      learningRate: { peak: 0.1 },
    },
    { file: "job.yaml" },
  ).data;

const folder = (more: object): DataJob => dataOf({ kind: "image-folder", folder: "images", size: 224, ...more });
const bytes = { dtype: "u8", shape: [28, 28, 1] } as const;
const normalise = { mean: [0.5], std: [0.25] };

test.each([
  [
    { resize: 256, resample: "bicubic" },
    { resize: 256, crop: [224, 224], resample: "bicubic" },
  ],
  [{ resize: [256, 240] }, { resize: [256, 240], crop: [224, 224], resample: "bilinear" }],
  [{ resize: [224, 224] }, { resize: [224, 224], resample: "bilinear" }],
  [
    { fit: "stretch", resample: "box", normalise },
    { resize: [224, 224], resample: "box", normalise },
  ],
  [
    { fit: "stretch", decoder: "napi-rs", cacheMegabytes: 1, decodeSize: [256, 230] },
    { resize: [256, 230], crop: [224, 224], resample: "bilinear" },
  ],
])("%j has an exact equivalent", (options, processor) => {
  expect(exportedImages(folder(options), undefined)).toEqual({ processor, remarks: [] });
});

test("reports the nearest equivalent if there is no exact one", () => {
  expect(exportedImages(folder({}), undefined)).toEqual({
    processor: { resize: 224, crop: [224, 224], resample: "lanczos" },
    remarks: [
      "preprocessor_config.json gives nearly the pixels of the run: data.fit cover crops images before resizing them, and sharp's filter is nearly Pillow's lanczos; for identical pixels, train with data.resize and data.resample",
    ],
  });
  const { remarks } = exportedImages(folder({ fit: "stretch" }), undefined)!;
  expect(remarks).toEqual([expect.stringMatching(/^preprocessor_config\.json gives nearly .*: sharp's filter is/)]);
});

test("reports a missing equivalent, and writes nothing", () => {
  for (const [options, told] of [
    [{ fit: "contain" }, /data\.fit contain with data\.size 224×224/],
    [{ size: [224, 160] }, /data\.fit cover with data\.size 224×160/],
  ] as const)
    expect(exportedImages(folder(options), undefined)).toEqual({ remarks: [expect.stringMatching(told)] });
});

test("images of the right size are not resized, and floats are not scaled; other data have no processor", () => {
  const mnist = dataOf({ kind: "mnist", normalise });
  expect(exportedImages(mnist, bytes)).toEqual({ processor: { normalise }, remarks: [] });
  expect(exportedImages(dataOf({ kind: "mnist" }), bytes)).toEqual({ processor: {}, remarks: [] });
  const numpy = dataOf({ kind: "numpy", file: "a.npz", normalise });
  expect(exportedImages(numpy, { ...bytes, dtype: "f32" })?.processor).toEqual({
    normalise: { mean: [0.5 / 255], std: [0.25 / 255] },
  });
  expect(exportedImages(numpy, { dtype: "f32", shape: [5] })).toBeUndefined();
  const text = { kind: "text", file: "a.txt", window: 5, testFraction: 0.1 } as const;
  expect(exportedImages(text, { dtype: "i32", shape: [5] })).toBeUndefined();
});
