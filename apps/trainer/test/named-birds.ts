import { arrayRecords } from "@skein/data";
import type { DataSet } from "@skein/step/node";
import { NdArray } from "@skein/tensor-core";

const kinds = ["duck", "swan", "goose", "duck", "duck", "swan"];

/**
 * Returns six pictures, u8 [4, 4, 1]. Their classes are numbered in the order of `names`; unknown names have class 0.
 */
export const birds = ({ names }: { readonly names: readonly string[] }): DataSet => {
  const labels = kinds.map((kind) => Math.max(0, names.indexOf(kind)));
  const pixels = Array.from({ length: kinds.length * 16 }, (_, i) => (i * 37) % 256);
  const samples = arrayRecords({
    inputs: NdArray.from(pixels, [kinds.length, 4, 4, 1], "u8"),
    labels: NdArray.from(labels, [kinds.length], "i32"),
  });
  return { train: samples, test: samples, predicts: "classes", classes: names.length, classNames: names };
};
