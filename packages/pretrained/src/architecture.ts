import type { Model } from "@skein/models";

/** Contents of config.json; fields that no architecture reads are kept. */
export type Config = Readonly<Record<string, unknown>>;

/** Permutation of dimensions: dimension i of our tensor is dimension `order[i]` of the tensor in the file. */
export type DimOrder = readonly number[];

/** Weight of a linear layer: [out, in] in the file, [in, out] here. */
export const transposed: DimOrder = [1, 0];

/**
 * A parameter's path, its name in files, and its permutation of dimensions if these differ. A `*` stands for a number;
 * numbers match in order.
 */
export type NameRow = readonly [path: string, name: string, order?: DimOrder];

/** The classification head of a model. */
export interface Head {
  /** Paths of its parameters, which are initialized for a new head. */
  readonly initialised: RegExp;
  /** Paths of parameters below the head that are initialized if the checkpoint lacks them. */
  readonly initialisedIfMissing?: RegExp;
  /** Names of the tensors of heads in files, which are dropped. */
  readonly dropped: RegExp;
}

/** The model of a config.json, and the names of its tensors. */
export interface Opened {
  readonly model: Model;
  readonly params: readonly NameRow[];
  /** Names of the model's state, such as running statistics. Default: none. */
  readonly state?: readonly NameRow[];
  /** Prefix of most names in a checkpoint with a head; omitted in a checkpoint without a head. */
  readonly prefix?: string;
  /** Names of tensors that a file may have in addition to the model's; they are kept unread. */
  readonly carried?: readonly RegExp[];
  /** Tensors that repeat another tensor (tied weights): name of the copy to name of the original. */
  readonly copies?: ReadonlyMap<string, string>;
  /** The classification head, which can be replaced. Absent: the model has none. */
  readonly head?: Head;
  /** Names in old files, and the current names. */
  readonly renamed?: readonly (readonly [old: RegExp, now: string])[];
}

/** One kind of model, identified by `model_type` of its configuration. */
export interface Architecture {
  /** @throws PretrainedError for a configuration that the model does not support. */
  open(config: Config, options: OpenOptions): Opened;
  /** Entry in `architectures` of the model with a classification head. Absent: there is none. */
  readonly classifier?: string;
}

export interface OpenOptions {
  /** Recomputation in the backward pass, see the models. Default: none. */
  readonly recompute?: "none" | "blocks";
}
