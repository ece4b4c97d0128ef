import { type DimOrder, type NameRow, transposed } from "./architecture.ts";

const weightAndBias = (path: string, name: string, order?: DimOrder): NameRow[] => [
  [`${path}.weight`, `${name}.weight`, ...(order === undefined ? ([] as const) : ([order] as const))],
  [`${path}.bias`, `${name}.bias`],
];

/** A linear layer, with or without a bias. */
export const linear = (path: string, name: string): NameRow[] => weightAndBias(path, name, transposed);

/** A linear layer whose weight lies as ours does, [in, out]. */
export const untransposed = (path: string, name: string): NameRow[] => weightAndBias(path, name);

/** A convolution's weight: [out, in, height, width] there, [height, width, in, out] here. */
const kernel: DimOrder = [2, 3, 1, 0];

/** A convolution, with or without a bias. */
export const convolution = (path: string, name: string): NameRow[] => weightAndBias(path, name, kernel);

/** Gain and shift of layer or batch normalisation. */
export const norm = (path: string, name: string): NameRow[] => [
  [`${path}.gain`, `${name}.weight`],
  [`${path}.shift`, `${name}.bias`],
];
