import type { Model } from "@skein/models";
import type { MapTree, NdArray, StoredTensor, Tensor } from "@skein/tensor-core";
import type { Config } from "./architecture.ts";
import type { FloatDType } from "./float-bits.ts";
import type { ImageProcessor } from "./image-processor.ts";

/** A tensor of a checkpoint that is no weight of the model. */
export type CarriedTensor = StoredTensor;

/** How a checkpoint kept what it held, so that it can be written in the same way. */
export interface Stored {
  /** Name and dtype of each leaf of the model, by its path in `{ params, state }`. */
  readonly leaves: ReadonlyMap<string, { readonly name: string; readonly dtype: FloatDType }>;
  /** Tensors of the files that repeat a leaf: its path, by their name. */
  readonly copies: ReadonlyMap<string, string>;
  /** Tensors of the files that are none of the model's, by name. */
  readonly carried: ReadonlyMap<string, CarriedTensor>;
}

/** What is saved: a configuration and the arrays of its model, f32. */
export interface Weights<Params = unknown, State = unknown> {
  readonly config: Config;
  readonly params: MapTree<Params, Tensor, NdArray>;
  /** What the model moves itself. Default: an empty tree, as most models have. */
  readonly state?: MapTree<State, Tensor, NdArray>;
  /** Default: the names of today, f32. */
  readonly stored?: Stored;
  /** How images become its inputs. Default: no file says so. */
  readonly imageProcessor?: ImageProcessor | undefined;
}

/** A checkpoint that was read. */
export interface Pretrained<Params = unknown, State = unknown> extends Weights<Params, State> {
  readonly model: Model<Params, State>;
  readonly state: MapTree<State, Tensor, NdArray>;
  readonly stored: Stored;
}
