import { cast, crossEntropyPerRow, logicalAnd, notEqual, type Sharding, sum, type Tensor } from "@skein/tensor-core";
import { checkedApply } from "./checked-apply.ts";
import { type LossResult, lossResult } from "./loss-sum.ts";
import { type Metrics, metricsOf, type Ratio, rowCount, rowMask, type Sums } from "./metrics.ts";
import type { Past } from "./past.ts";

/** Options of one call of a model. */
export interface RunContext {
  /**
   * Whether the call is a training step. If true, batch statistics and dropout are used; if false, running statistics
   * and no dropout.
   */
  readonly train: boolean;
  /** Random key, u32[2], different in every step. Required only for dropout. */
  readonly key?: Tensor;
  /**
   * Cached keys and values of earlier tokens, for a causal model (see `applyAfterPrefix`). Not allowed during training.
   */
  readonly past?: Past;
  /**
   * Label smoothing: fraction of the target probability that the training loss spreads over all classes, 0 to 1.
   * Default: the setting of the model, which is 0 unless given.
   */
  readonly labelSmoothing?: number;
  /** State of the whole batch. Set for microbatches if the model has `needsWhole`. */
  readonly whole?: WholeBatchState;
}

/** Information about the whole batch on which the loss of a microbatch may depend. */
export interface WholeBatchState {
  /** State of the model after all microbatches, joined by `joinParts`, from an earlier pass over the batch. */
  readonly state: unknown;
  readonly numParts: number;
}

/** Inputs with one label per row: images with their classes, or tokens with the next token at each position. */
export interface LabelledBatch {
  /** Inputs `[B, …]`: images f32 or u8 [B, H, W, C], or tokens i32 [B, T]. */
  readonly inputs: Tensor;
  /** Labels, i32 [B] or [B, T]. */
  readonly labels: Tensor;
  /** Mask, bool [B]; false for padding rows. Absent: no row is masked. */
  readonly mask?: Tensor;
}

/**
 * Input type of a model: the type of the batch's field `inputs` if the field exists; otherwise, the type of the batch.
 */
export type InputsOf<Batch> = Batch extends { readonly inputs: infer Inputs } ? Inputs : Batch;

/**
 * A model: plain traced functions. `params` is the tree of values that the optimizer updates. `state` is the tree of
 * values that the model itself updates, such as the running statistics of batch normalization; it is empty for most
 * models. Every call receives the state and returns the new state. A batch is any tree of tensors whose first dimension
 * is the sample, with named fields at the root; `mask` marks padding rows. Models of this package use `LabelledBatch`.
 *
 * @example const [loss, modelState, gradients] = valueAndGradWithAux(model.loss)(params, modelState, batch, { train:
 * true, key });
 */
export interface Model<
  Params = unknown,
  State = unknown,
  Batch = LabelledBatch,
  Totals extends Sums = Metrics,
  Outputs = Tensor,
> {
  /** Returns initial parameters and state from a key, u32[2]. */
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /**
   * Forward pass. Returns the outputs, such as logits f32 [..., classes] or a tree of tensors, and the new state.
   * `apply` must not depend on the labels, because metrics and exports use `apply` as the forward pass.
   */
  apply(
    params: Params,
    state: State,
    inputs: InputsOf<Batch>,
    context: RunContext,
  ): readonly [outputs: Outputs, state: State];
  /**
   * Returns the mean loss, f32 scalar, such as cross-entropy in nats, and the new state. If several ranks share a
   * sample, each rank returns the loss of its part, and the mean over these ranks is the loss of the sample.
   *
   * The third entry contains the sum and the count whose quotient is the loss (`lossResult`). A training step on
   * several ranks or microbatches adds sums and counts first, and then divides. If the third entry is absent, the loss
   * must be a mean with equal weight per sample; the loss of a batch is then the mean over equal microbatches.
   */
  loss(params: Params, state: State, batch: Batch, context: RunContext): LossResult<State>;
  /**
   * Whether the loss of a microbatch depends on more information about the whole batch than a sum and a count, as
   * balance losses of experts do. If true, a batch that is divided into microbatches passes through the model an
   * additional time before the first microbatch, and the joined state of this pass is `context.whole`. Requires
   * `joinParts`. Default: false.
   */
  readonly needsWhole?: boolean;
  /**
   * Returns the state after one more microbatch. Each microbatch is computed from the state `before`, and the joined
   * result equals the state after the whole batch. Absent: each microbatch starts with the state after the previous
   * microbatch, as for the running statistics of batch normalization.
   */
  joinParts?(parts: MicrobatchStates<State>): State;
  /** Returns sums over the unmasked rows. The caller adds the sums over batches and ranks. */
  evaluate(params: Params, state: State, batch: Batch): Totals;
  /**
   * Metrics in addition to the loss and, for classifiers, the accuracy, by name: ratios of sums returned by `evaluate`.
   * Default: no additional metrics.
   */
  readonly metrics?: Readonly<Record<string, Ratio>>;
  /**
   * Sharding of the parameters. Each rank along a mesh axis has a shard, and all functions receive and return the shard
   * of the traced rank. Absent: every rank has all parameters.
   */
  readonly sharding?: Sharding;
  /**
   * Properties of the logits, for models whose `apply` returns logits [..., classes] of classes numbered from 0.
   * Absent: outputs may be anything, and are not checked against the classes of the data.
   */
  readonly logits?: LogitsFacts;
  /** Expert layers, needed to reassign experts to ranks. Absent: the model has no experts. */
  readonly experts?: ModelExperts<Params, State>;
  /** Returns metrics of the last step, by name, from the state. */
  figures?(state: State): Readonly<Record<string, Tensor>>;
}

/** States of a model that `joinParts` joins after a microbatch. */
export interface MicrobatchStates<State> {
  /** State before the first microbatch. */
  readonly before: State;
  /** Joined state after all earlier microbatches. */
  readonly earlier: State;
  /** State after this microbatch only, starting from `before`. */
  readonly own: State;
  /** Number of earlier microbatches, u32 scalar, at least 1. */
  readonly numEarlier: Tensor;
}

/** Properties of a model's logits. */
export interface LogitsFacts {
  /** Label of rows to exclude from loss and metrics, such as −100. Absent: every label must be a class. */
  readonly ignoreIndex?: number;
}

/** Expert layers of a model. */
export interface ModelExperts<Params = unknown, State = unknown> {
  /**
   * Expert layers, in the order of the results of `choices`. `name`: scope of the layer. `params`: path of its
   * parameters in the parameter tree. `state`: path of its state in the state tree.
   */
  readonly layers: readonly { readonly name: string; readonly params: string; readonly state: string }[];
  /**
   * Returns, per layer, the experts chosen by the tokens of the inputs, i32 [T, K]; −1 if a token has no expert for a
   * choice.
   *
   * @throws ArgumentError if a layer does not choose experts because it uses soft routing, in which all experts process
   * mixtures of all tokens.
   */
  choices(params: Params, state: State, inputs: Tensor, context: RunContext): readonly Tensor[];
}

export interface LossOptions {
  /**
   * Label smoothing during training: fraction of the target probability to spread over all classes, 0 to 1.
   * `RunContext.labelSmoothing` overrides this value. `evaluate` does not smooth. Default: 0.
   */
  readonly labelSmoothing?: number;
  /** Label of rows to exclude from loss and metrics. Absent: no label is excluded. */
  readonly ignoreIndex?: number;
}

/**
 * Completes a model whose `apply` returns logits: adds the loss and the metrics of labelled batches.
 *
 * @example labelledModel({ init, apply }, { labelSmoothing: 0.1 })
 */
export const labelledModel = <Params, State>(
  { init, apply }: Pick<Model<Params, State>, "init" | "apply">,
  options: LossOptions = {},
): Model<Params, State> => withLosses({ init, apply: checkedApply(apply, "logits") }, options);

const withLosses = <Params, State>(
  { init, apply }: Pick<Model<Params, State>, "init" | "apply">,
  { labelSmoothing = 0, ignoreIndex }: LossOptions,
): Model<Params, State> => ({
  init,
  apply,
  logits: ignoreIndex === undefined ? {} : { ignoreIndex },
  loss: (params, state, batch, context) => {
    const [logits, next] = apply(params, state, batch.inputs, context);
    const mask = countedRows(batch, ignoreIndex);
    const share = context.labelSmoothing ?? labelSmoothing;
    const losses = crossEntropyPerRow(logits, cast(batch.labels, "i32"), {
      labelSmoothing: context.train ? share : 0,
      ...(mask && { mask }),
    });
    return lossResult({ sum: sum(losses), count: rowCount(losses, mask) }, next);
  },
  evaluate: (params, state, batch) => {
    const [logits] = apply(params, state, batch.inputs, { train: false });
    return metricsOf(logits, batch.labels, countedRows(batch, ignoreIndex));
  },
});

/**
 * Returns the mask of the rows to include in loss and metrics, bool, shaped like the labels; undefined if all rows are
 * included.
 */
const countedRows = ({ labels, mask }: LabelledBatch, ignoreIndex: number | undefined): Tensor | undefined => {
  const rows = mask && rowMask(mask, labels);
  if (ignoreIndex === undefined) return rows;
  const counts = notEqual(cast(labels, "i32"), ignoreIndex);
  return rows === undefined ? counts : logicalAnd(rows, counts);
};
