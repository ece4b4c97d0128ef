import type { Model } from "@skein/models";

/** Contents of config.json, including fields that no architecture reads. */
export type Config = Readonly<Record<string, unknown>>;

/** Permutation of dimensions: dimension i of our tensor is dimension `order[i]` of the tensor in the file. */
export type DimOrder = readonly number[];

/** Permutation for the weight of a linear layer, which is [out, in] in the file and [in, out] in the model. */
export const transposed: DimOrder = [1, 0];

/**
 * Row of a name table: path of a parameter in the model, its name in files, and the permutation of its dimensions if
 * file and model differ. A `*` matches a number. The numbers in the path and in the name correspond in order.
 */
export type NameRow = readonly [path: string, name: string, order?: DimOrder];

/** Classification head of a model. */
export interface Head {
  /** Matches the paths of the head's parameters, which are initialized if the head is new. */
  readonly initialised: RegExp;
  /**
   * Matches the paths of parameters outside of the head that are initialized if the checkpoint does not contain them.
   */
  readonly initialisedIfMissing?: RegExp;
  /**
   * Matches the names of head tensors in files, for heads of all types. These tensors are dropped when the head is
   * replaced.
   */
  readonly dropped: RegExp;
}

/** Model that a config.json describes, and the names of its tensors in files. */
export interface Opened {
  readonly model: Model;
  readonly params: readonly NameRow[];
  /** Names of the model's state, such as running statistics, in files. Default: no state. */
  readonly state?: readonly NameRow[];
  /** Prefix of most tensor names in a checkpoint with a head. A checkpoint without a head omits the prefix. */
  readonly prefix?: string;
  /** Names of additional tensors that a file may contain. They are not loaded. */
  readonly carried?: readonly RegExp[];
  /** Duplicate tensors (tied weights) in a file: name of the duplicate → name of the original. */
  readonly copies?: ReadonlyMap<string, string>;
  /** Classification head, which can be replaced. Absent: the model has no classification head. */
  readonly head?: Head;
  /** Parts of tensor names in old files, with their current replacements. */
  readonly renamed?: readonly (readonly [old: RegExp, now: string])[];
}

/** A model type, identified by `model_type` in its configuration. */
export interface Architecture {
  /** Builds the model of a configuration. @throws PretrainedError if the configuration is not supported. */
  open(config: Config, options: OpenConfigOptions): Opened;
  /** Name, in the field `architectures`, of the model with a classification head. Absent: there is no such model. */
  readonly classifier?: string;
}

export interface OpenConfigOptions {
  /** Recomputation in the backward pass, as in the options of the models. Default: none. */
  readonly recompute?: "none" | "blocks";
}
