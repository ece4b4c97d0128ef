import type { Model } from "@skein/models";
import type { MapTree, NdArray, StoredTensor, Tensor } from "@skein/tensor-core";
import type { Config } from "./architecture.ts";
import type { FloatDType } from "./float-bits.ts";
import type { ImageProcessor } from "./image-processor.ts";

/** A tensor of a checkpoint that does not belong to the model. */
export type CarriedTensor = StoredTensor;

/** Storage details of a checkpoint, so that it can be saved in the same form. */
export interface Stored {
  /** Name and dtype of each leaf of the model, by its path in `{ params, state }`. */
  readonly leaves: ReadonlyMap<string, { readonly name: string; readonly dtype: FloatDType }>;
  /** Tensors of the files that repeat a leaf: name to path of the leaf. */
  readonly copies: ReadonlyMap<string, string>;
  /** Tensors of the files that do not belong to the model, by name. */
  readonly carried: ReadonlyMap<string, CarriedTensor>;
}

/** A checkpoint to save: a configuration and the arrays of its model, f32. */
export interface Weights<Params = unknown, State = unknown> {
  readonly config: Config;
  readonly params: MapTree<Params, Tensor, NdArray>;
  /** State of the model. Default: an empty tree, as for most models. */
  readonly state?: MapTree<State, Tensor, NdArray>;
  /** Storage details. Absent: current names and f32. */
  readonly stored?: Stored;
  /** Image preprocessing. Absent: no preprocessor file is written. */
  readonly imageProcessor?: ImageProcessor | undefined;
}

/** A loaded checkpoint. */
export interface Pretrained<Params = unknown, State = unknown> extends Weights<Params, State> {
  readonly model: Model<Params, State>;
  readonly state: MapTree<State, Tensor, NdArray>;
  readonly stored: Stored;
}
