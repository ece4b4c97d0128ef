import type { Model } from "@skein/models";
import type { MapTree, NdArray, StoredTensor, Tensor } from "@skein/tensor-core";
import type { Config } from "./architecture.ts";
import type { FloatDType } from "./float-bits.ts";
import type { ImageProcessor } from "./image-processor.ts";

/** A tensor of a checkpoint that does not belong to the model. */
export type CarriedTensor = StoredTensor;

/**
 * Names and dtypes in the files of a checkpoint, so that the checkpoint can be saved with the same names and dtypes.
 */
export interface Stored {
  /** Tensor name in the files and dtype for each leaf of the model, by path in `{ params, state }`. */
  readonly leaves: ReadonlyMap<string, { readonly name: string; readonly dtype: FloatDType }>;
  /** Duplicate tensors in the files: name of the duplicate → path of the repeated leaf. */
  readonly copies: ReadonlyMap<string, string>;
  /** Tensors in the files that do not belong to the model, by name. */
  readonly carried: ReadonlyMap<string, CarriedTensor>;
}

/** A checkpoint to save: a configuration, and the arrays of its model in f32. */
export interface Weights<Params = unknown, State = unknown> {
  readonly config: Config;
  readonly params: MapTree<Params, Tensor, NdArray>;
  /** State of the model. Default: an empty tree, because most models have no state. */
  readonly state?: MapTree<State, Tensor, NdArray>;
  /** Names and dtypes for the files. Absent: current names and f32. */
  readonly stored?: Stored;
  /** Image preprocessing of the model. Absent: no preprocessor file is written. */
  readonly imageProcessor?: ImageProcessor | undefined;
}

/** A loaded checkpoint. */
export interface Pretrained<Params = unknown, State = unknown> extends Weights<Params, State> {
  readonly model: Model<Params, State>;
  readonly state: MapTree<State, Tensor, NdArray>;
  readonly stored: Stored;
}
