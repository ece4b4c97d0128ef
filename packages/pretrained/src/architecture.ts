import type { Model } from "@skein/models";

/** What config.json says; fields that no architecture reads are kept. */
export type Config = Readonly<Record<string, unknown>>;

/**
 * Dimensions of a tensor of ours in terms of the one in the file: ours has size `theirs[order[i]]` at dimension i.
 */
export type DimOrder = readonly number[];

/** A linear layer's weight: [out, in] there, [in, out] here. */
export const transposed: DimOrder = [1, 0];

/**
 * A parameter's path, the name that it has in files, and the order of its dimensions where that differs. A `*` stands
 * for a number, the same in both at the same place.
 */
export type NameRow = readonly [path: string, name: string, order?: DimOrder];

/** The part of a model that tells classes. */
export interface Head {
  /** Its parameters, by their paths. */
  readonly made: RegExp;
  /** Parameters below it that not every checkpoint has; they are made where it has none. */
  readonly madeWhereMissing?: RegExp;
  /** Heads in files, by the names of their tensors. */
  readonly dropped: RegExp;
}

/** What config.json is to become. */
export interface Opened {
  readonly model: Model;
  readonly params: readonly NameRow[];
  /** Of what the model moves itself, such as running statistics. Default: none. */
  readonly state?: readonly NameRow[];
  /** In front of most names where the checkpoint is of a model with a head, left out where it is of the body alone. */
  readonly prefix?: string;
  /** Tensors that a file may have beside those of the model; they are carried, not read. */
  readonly carried?: readonly RegExp[];
  /** Tensors that a file may have though they are another one, tied to it: name of the copy, name of what it copies. */
  readonly copies?: ReadonlyMap<string, string>;
  /** What tells classes, which may be made anew for others; absent where the model predicts no classes. */
  readonly head?: Head;
  /** Names of old files, and what they are called now. */
  readonly renamed?: readonly (readonly [old: RegExp, now: string])[];
}

/** One kind of model, told by `model_type` of its configuration. */
export interface Architecture {
  /** @throws PretrainedError for a configuration that the model does not cover. */
  open(config: Config, options: OpenOptions): Opened;
  /** In `architectures` of the model that tells classes, where there is one. */
  readonly classifier?: string;
}

export interface OpenOptions {
  /** See the models: what of a block is computed again for the backward pass. Default: none. */
  readonly recompute?: "none" | "blocks";
}
