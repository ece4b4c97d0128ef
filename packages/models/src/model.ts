import { cast, crossEntropyPerRow, logicalAnd, notEqual, type Sharding, sum, type Tensor } from "@skein/tensor-core";
import { checkedApply } from "./checked-apply.ts";
import { type LossResult, lossResult } from "./loss-sum.ts";
import { type Metrics, metricsOf, type Ratio, rowCount, rowMask, type Sums } from "./metrics.ts";
import type { Past } from "./past.ts";

/** How a model is being run. */
export interface RunContext {
  /** Batch statistics and dropout while training; running statistics and no dropout otherwise. */
  readonly train: boolean;
  /** u32[2], fresh every step. Only dropout needs it. */
  readonly key?: Tensor;
  /** Of a causal model that goes on from tokens before these: see `applyBehind`. Not while training. */
  readonly past?: Past;
  /**
   * Share of the target that the loss is to spread over all classes while training, 0 to 1. Default: what the model
   * itself says, which is 0 unless it says another.
   */
  readonly labelSmoothing?: number;
  /** For a part of a batch, if the model needs it (`needsWhole`). */
  readonly whole?: WholeBatchState;
}

/** What a part of a batch knows of the whole batch. */
export interface WholeBatchState {
  /** State of the model after all parts, joined, from a pass over the batch before. */
  readonly state: unknown;
  readonly numParts: number;
}

/** Inputs with one label per row: images with classes, or tokens with the tokens that follow them. */
export interface LabelledBatch {
  /** `[B, …]`: images f32 or u8 [B, H, W, C], tokens i32 [B, T]. */
  readonly inputs: Tensor;
  /** i32 [B] or [B, T]. */
  readonly labels: Tensor;
  /** bool [B]: false for rows that only fill up the batch. Absent means all rows count. */
  readonly mask?: Tensor;
}

/** What of a batch a model is applied to: its field `inputs` where there is one, and else all of it. */
export type InputsOf<Batch> = Batch extends { readonly inputs: infer Inputs } ? Inputs : Batch;

/**
 * A model: plain traced functions. What training moves is `params`; what the model itself moves, such as the running
 * statistics of batch normalisation, is `state`, an empty tree for most models. It enters and leaves every call. A
 * batch is any tree of tensors that have the sample as their first dimension, with names at its root, `mask` among them
 * where rows only fill it up; `LabelledBatch` is the one that models of this package take.
 *
 * @example const [loss, modelState, gradients] = valueAndGradWithAux(model.loss)(params, modelState, batch, { train:
 * true, key });
 */
export interface Model<
  Params = unknown,
  State = unknown,
  Batch = LabelledBatch,
  Judged extends Sums = Metrics,
  Outputs = Tensor,
> {
  /** First parameters and state from a key, u32[2]. */
  init(key: Tensor): { readonly params: Params; readonly state: State };
  /**
   * What the model makes of the inputs, such as logits f32 [..., classes], or a tree of tensors, and the new state.
   * It does not look at what is to be predicted: figures and exports take it as the forward pass.
   */
  apply(
    params: Params,
    state: State,
    inputs: InputsOf<Batch>,
    context: RunContext,
  ): readonly [outputs: Outputs, state: State];
  /**
   * Mean loss, f32 scalar, such as cross-entropy in nats, and the new state. If ranks share a sample, the loss of the
   * rank's part: the mean over ranks is the loss of the sample.
   *
   * A third entry has the sum and the count of which the loss is the quotient (`lossResult`). A training step that is
   * split over ranks or parts adds up both and divides once. Absent: the loss is a mean in which each sample counts the
   * same, and the mean over equal parts is the loss of the batch.
   */
  loss(params: Params, state: State, batch: Batch, context: RunContext): LossResult<State>;
  /**
   * Whether the loss of a part of a batch depends on the whole batch by more than a sum and a count, as balance losses
   * of experts do. A batch in parts is then passed through the model once more, before the first part: its joined state
   * is `context.whole`. Needs `joinParts`. Default: false.
   */
  readonly needsWhole?: boolean;
  /**
   * State after one more part of a batch whose parts are computed one after the other, each from `before`: that which
   * the whole batch would leave. Default: each part begins with the state that the part before has left, as running
   * statistics of batch normalisation do.
   */
  joinParts?(parts: StatesOfParts<State>): State;
  /** Sums over the rows that count, to be added up over batches and ranks. */
  evaluate(params: Params, state: State, batch: Batch): Judged;
  /**
   * Figures of its own, by name, beside the loss and, of classes, the share of right answers: ratios of what `evaluate`
   * sums up. Default: none.
   */
  readonly metrics?: Readonly<Record<string, Ratio>>;
  /**
   * Parameters of which each rank along a mesh axis has a part: of those all functions give and take the part of the
   * rank that is traced for. Default: every rank has everything.
   */
  readonly sharding?: Sharding;
  /**
   * For models whose `apply` returns logits [..., classes], scores of the classes that labels number from 0. Absent:
   * outputs may be anything, and are not compared with the classes of the data.
   */
  readonly logits?: LogitsFacts;
  /** Of models with layers of experts: what it takes to place those anew. */
  readonly experts?: ModelExperts<Params, State>;
  /** Numbers worth following that its state tells of the last step, by name. */
  figures?(state: State): Readonly<Record<string, Tensor>>;
}

/** States of a model after parts of a batch. */
export interface StatesOfParts<State> {
  /** State before the first part. */
  readonly before: State;
  /** State after all earlier parts, joined. */
  readonly earlier: State;
  /** State after this part alone. */
  readonly own: State;
  /** Number of earlier parts, u32 scalar, at least 1. */
  readonly numEarlier: Tensor;
}

/** Facts about a model's logits. */
export interface LogitsFacts {
  /** Label of rows that loss and metrics leave out, such as −100. Absent: every label must be a class. */
  readonly ignoreIndex?: number;
}

/** Layers of experts within a model. */
export interface ModelExperts<Params = unknown, State = unknown> {
  /** In the order of `choices`: the scope of each, and the paths of its own in the trees of parameters and of state. */
  readonly layers: readonly { readonly name: string; readonly params: string; readonly state: string }[];
  /**
   * i32 [T, K] of each layer: which experts the tokens of these inputs choose, −1 for no choice.
   *
   * @throws ArgumentError where a layer makes no choices: it mixes all tokens for all experts.
   */
  choices(params: Params, state: State, inputs: Tensor, context: RunContext): readonly Tensor[];
}

export interface LossOptions {
  /**
   * Share of the target that is spread over all classes while training, 0 to 1, where the context of a call does not
   * say another. What `evaluate` counts is never smoothed. Default: 0.
   */
  readonly labelSmoothing?: number;
  /** Rows with this label do not count, in the loss and in the metrics. Default: no label is special. */
  readonly ignoreIndex?: number;
}

/**
 * Complete a model that gives logits with the loss and the metrics of labelled batches.
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

/** Rows that count, bool shaped like the labels; undefined where all do. */
const countedRows = ({ labels, mask }: LabelledBatch, ignoreIndex: number | undefined): Tensor | undefined => {
  const rows = mask && rowMask(mask, labels);
  if (ignoreIndex === undefined) return rows;
  const counts = notEqual(cast(labels, "i32"), ignoreIndex);
  return rows === undefined ? counts : logicalAnd(rows, counts);
};
