import { type DimOrder, type NameRow, transposed } from "./architecture.ts";

const weightAndBias = (path: string, name: string, order?: DimOrder): NameRow[] => [
  [`${path}.weight`, `${name}.weight`, ...(order === undefined ? ([] as const) : ([order] as const))],
  [`${path}.bias`, `${name}.bias`],
];

/**
 * Returns the name-table rows (see `NameRow`) for the weight and, if present, the bias of a linear layer. `path` is the
 * path in the model, and `name` the name in files.
 */
export const linear = (path: string, name: string): NameRow[] => weightAndBias(path, name, transposed);

/**
 * Returns the name-table rows for the weight and, if present, the bias of a linear layer whose weight is [in, out] in
 * the file, as in the model.
 */
export const untransposed = (path: string, name: string): NameRow[] => weightAndBias(path, name);

/**
 * Permutation for the weight of a convolution, which is [out, in, height, width] in the file and [height, width, in,
 * out] in the model.
 */
const kernel: DimOrder = [2, 3, 1, 0];

/** Returns the name-table rows for the weight and, if present, the bias of a convolution. */
export const convolution = (path: string, name: string): NameRow[] => weightAndBias(path, name, kernel);

/** Returns the name-table rows for the gain and shift of layer or batch normalization. */
export const norm = (path: string, name: string): NameRow[] => [
  [`${path}.gain`, `${name}.weight`],
  [`${path}.shift`, `${name}.bias`],
];
