import { cast, crossEntropyPerRow, logicalAnd, notEqual, type Sharding, sum, type Tensor } from "@skein/tensor-core";
import { checkedApply } from "./checked-apply.ts";
import { type LossResult, lossResult } from "./loss-sum.ts";
import { type Metrics, metricsOf, type Ratio, rowCount, rowMask, type Sums } from "./metrics.ts";
import type { Past } from "./past.ts";

/** Run options of a model call. */
export interface RunContext {
  /**
   * Whether the call is a training step: batch statistics and dropout if true, running statistics and no dropout
   * otherwise.
   */
  readonly train: boolean;
  /** Random key u32[2], new in every step. Required only by dropout. */
  readonly key?: Tensor;
  /** Keys and values of earlier tokens, for a causal model: see `applyAfterPrefix`. Not during training. */
  readonly past?: Past;
  /**
   * Label smoothing: share of the target that the training loss spreads over all classes, 0 to 1. Default: the model's
   * own setting, which is 0 unless set.
   */
  readonly labelSmoothing?: number;
  /** State of the whole batch; set for a microbatch if the model needs it (`needsWhole`). */
  readonly whole?: WholeBatchState;
}

/** Information about the whole batch for a microbatch. */
export interface WholeBatchState {
  /** State of the model after all microbatches, joined, from an earlier pass over the batch. */
  readonly state: unknown;
  readonly numParts: number;
}

/** Inputs with one label per row: images with classes, or tokens with the tokens that follow them. */
export interface LabelledBatch {
  /** `[B, …]`: images f32 or u8 [B, H, W, C], tokens i32 [B, T]. */
  readonly inputs: Tensor;
  /** i32 [B] or [B, T]. */
  readonly labels: Tensor;
  /** bool [B]: false for padding rows. Absent: all rows count. */
  readonly mask?: Tensor;
}

/** Inputs of a model: the batch's field `inputs` if it exists, otherwise the whole batch. */
export type InputsOf<Batch> = Batch extends { readonly inputs: infer Inputs } ? Inputs : Batch;

/**
 * A model: plain traced functions. `params` are the values that the optimizer updates; `state` are the values that the
 * model updates itself, such as the running statistics of batch normalization, an empty tree for most models. Every
 * call takes the state and returns it. A batch is any tree of tensors with the sample as first dimension and names at
 * the root; `mask` marks padding rows. Models of this package take a `LabelledBatch`.
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
   * Forward pass: returns the outputs, such as logits f32 [..., classes] or a tree of tensors, and the new state.
   * `apply` does not read the labels: metrics and exports use it as the forward pass.
   */
  apply(
    params: Params,
    state: State,
    inputs: InputsOf<Batch>,
    context: RunContext,
  ): readonly [outputs: Outputs, state: State];
  /**
   * Returns the mean loss, f32 scalar, such as cross-entropy in nats, and the new state. If ranks share a sample, the
   * result is the loss of the rank's part: the mean over ranks is the loss of the sample.
   *
   * A third entry holds the sum and the count of which the loss is the quotient (`lossResult`). A training step that is
   * split over ranks or microbatches adds up sums and counts and divides once. Absent: the loss is a mean with equal
   * weight per sample, and the mean over equal microbatches is the loss of the batch.
   */
  loss(params: Params, state: State, batch: Batch, context: RunContext): LossResult<State>;
  /**
   * Whether the loss of a microbatch depends on the whole batch by more than a sum and a count, as balance losses of
   * experts do. A batch in microbatches is then passed through the model once more, before the first microbatch, and
   * the joined state of that pass is `context.whole`. Needs `joinParts`. Default: false.
   */
  readonly needsWhole?: boolean;
  /**
   * Returns the state after one more microbatch if microbatches are computed one after the other, each from `before`:
   * equal to the state after the whole batch. Absent: each microbatch starts with the state of the previous one, as the
   * running statistics of batch normalization do.
   */
  joinParts?(parts: MicrobatchStates<State>): State;
  /** Returns sums over the rows that count, to be added up over batches and ranks. */
  evaluate(params: Params, state: State, batch: Batch): Totals;
  /**
   * Additional metrics by name, next to loss and, for classes, accuracy: ratios of the sums of `evaluate`. Default:
   * none.
   */
  readonly metrics?: Readonly<Record<string, Ratio>>;
  /**
   * Sharded parameters: each rank along a mesh axis has a part, and all functions take and return the part of the rank
   * that is traced. Absent: every rank has all parameters.
   */
  readonly sharding?: Sharding;
  /**
   * Present for models whose `apply` returns logits [..., classes], scores of the classes numbered from 0. Absent:
   * outputs may be anything, and are not checked against the classes of the data.
   */
  readonly logits?: LogitsFacts;
  /** Layers of experts; needed to reassign experts to ranks. Absent: no experts. */
  readonly experts?: ModelExperts<Params, State>;
  /** Returns metrics of the last step from the state, by name. */
  figures?(state: State): Readonly<Record<string, Tensor>>;
}

/** States of a model after microbatches of a batch. */
export interface MicrobatchStates<State> {
  /** State before the first microbatch. */
  readonly before: State;
  /** State after all earlier microbatches, joined. */
  readonly earlier: State;
  /** State after this microbatch only. */
  readonly own: State;
  /** Number of earlier microbatches, u32 scalar, at least 1. */
  readonly numEarlier: Tensor;
}

/** Properties of a model's logits. */
export interface LogitsFacts {
  /** Label of rows that loss and metrics exclude, such as −100. Absent: every label must be a class. */
  readonly ignoreIndex?: number;
}

/** Layers of experts in a model. */
export interface ModelExperts<Params = unknown, State = unknown> {
  /** Layers in the order of `choices`: the scope of each layer, and its paths in the trees of parameters and state. */
  readonly layers: readonly { readonly name: string; readonly params: string; readonly state: string }[];
  /**
   * Returns, per layer, the experts that the tokens of the inputs choose, i32 [T, K]; −1 for no choice.
   *
   * @throws ArgumentError if a layer makes no choices because it mixes all tokens for all experts.
   */
  choices(params: Params, state: State, inputs: Tensor, context: RunContext): readonly Tensor[];
}

export interface LossOptions {
  /**
   * Label smoothing: share of the target that is spread over all classes during training, 0 to 1, unless the context of
   * a call sets another. `evaluate` never smooths. Default: 0.
   */
  readonly labelSmoothing?: number;
  /** Label of rows that loss and metrics exclude. Absent: every row counts. */
  readonly ignoreIndex?: number;
}

/**
 * Completes a model that returns logits with the loss and the metrics of labelled batches.
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

/** Returns the mask of rows that count, bool, shaped like the labels; undefined if all rows count. */
const countedRows = ({ labels, mask }: LabelledBatch, ignoreIndex: number | undefined): Tensor | undefined => {
  const rows = mask && rowMask(mask, labels);
  if (ignoreIndex === undefined) return rows;
  const counts = notEqual(cast(labels, "i32"), ignoreIndex);
  return rows === undefined ? counts : logicalAnd(rows, counts);
};
