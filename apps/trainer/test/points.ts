import { arrayRecords } from "@skein/data";
import { type LabelledBatch, mlp, type MlpParams, type Model } from "@skein/models";
import { type EmptyState, NdArray } from "@skein/tensor-core";
import type { DataSet } from "../src/index.ts";

// Points of a plane in two classes, and a small model for these points, as a program passes them to `train()`.

const points = (count: number, from: number): DataSet["train"] =>
  arrayRecords({
    inputs: NdArray.from(
      Array.from({ length: 2 * count }, (_, i) => Math.sin(from + i * i)),
      [count, 2],
    ),
    labels: NdArray.from(
      Array.from({ length: count }, (_, i) => (Math.sin(from + 4 * i * i) > 0 ? 1 : 0)),
      [count],
      "i32",
    ),
  });

export const data: DataSet = { train: points(120, 0), test: points(33, 1), predicts: "classes", classes: 2 };
export const model: Model<MlpParams, EmptyState, LabelledBatch> = mlp({ sizes: [2, 16, 2] });
