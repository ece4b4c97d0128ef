import { type DimOrder, type NameRow, transposed } from "./architecture.ts";

const weightAndBias = (path: string, name: string, order?: DimOrder): NameRow[] => [
  [`${path}.weight`, `${name}.weight`, ...(order === undefined ? ([] as const) : ([order] as const))],
  [`${path}.bias`, `${name}.bias`],
];

/** Names of a linear layer, with or without a bias. */
export const linear = (path: string, name: string): NameRow[] => weightAndBias(path, name, transposed);

/** Names of a linear layer with a weight stored as [in, out], as here. */
export const untransposed = (path: string, name: string): NameRow[] => weightAndBias(path, name);

/** Weight of a convolution: [out, in, height, width] in the file, [height, width, in, out] here. */
const kernel: DimOrder = [2, 3, 1, 0];

/** Names of a convolution, with or without a bias. */
export const convolution = (path: string, name: string): NameRow[] => weightAndBias(path, name, kernel);

/** Names of the gain and shift of layer or batch normalization. */
export const norm = (path: string, name: string): NameRow[] => [
  [`${path}.gain`, `${name}.weight`],
  [`${path}.shift`, `${name}.bias`],
];
