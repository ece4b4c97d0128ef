import {
  type LogitsFacts,
  type LossResult,
  lossResult,
  type LossSum,
  type Metrics,
  type Ratio,
  type StatesOfParts,
} from "@skein/models";
import {
  customGradient,
  flattenTree,
  InvariantError,
  randomKey,
  type Tensor,
  trace,
  type Traced,
  unflattenTree,
  vjp,
} from "@skein/tensor-core";
import { isUsersOperator, replay } from "@skein/tensor-core/backend";
import { evaluationBatch } from "../evaluation/evaluation-batch.ts";
import type { Job } from "../job/job.ts";
import { requireSmoothing, withSmoothing } from "../building/label-smoothing.ts";
import { meshOf, numBatchParts, samplesAtOnce } from "../job/mesh.ts";
import { requireLogits } from "./checked-logits.ts";
import { composed } from "./composed-graph.ts";
import type { Weights } from "../task/forward-pass.ts";
import { resultSpecs } from "../task/result-specs.ts";
import { samplePassOf } from "../task/sample-pass.ts";
import { batchSpecs, type TrainingData, type AnyModel, type BatchTree } from "../task/task.ts";

/** A loss as graphs. */
interface TracedLoss {
  /** Gives `LossTensors`. */
  readonly value: Traced;
  /**
   * From the arguments of the loss and the cotangents of its terms to the gradients of the parameters, if the loss has
   * derivatives of the user's own: they are in no other graph.
   */
  readonly pullback?: Traced;
}

/**
 * A model as plain data, in the shapes of one job: the graphs of its functions. What a program made of functions cannot
 * be sent to the threads of its ranks; this can, and computes the same.
 */
export interface TracedModel {
  readonly init: Traced;
  readonly loss: TracedLoss;
  /** The loss of a part that is given the state of the whole batch, if the job computes such and the model needs it. */
  readonly lossOfPart?: TracedLoss;
  /** State after one more part of a batch, from `StatesOfParts`, if the model joins such. */
  readonly joinParts?: Traced;
  readonly evaluate: Traced;
  /**
   * From parameters, state and the inputs of one held-out sample to the outputs, where the job shows what the model
   * makes of samples and ranks do not share it out.
   */
  readonly outputs?: Traced;
  readonly logits?: LogitsFacts;
  readonly metrics?: Readonly<Record<string, Ratio>>;
}

/** What a loss returns, apart by whether gradients flow through it. */
interface LossTensors {
  /** The mean loss; or the sum and the auxiliary terms of which it is made. */
  readonly terms: { readonly loss: Tensor } | Pick<LossSum, "sum" | "auxiliary">;
  readonly state: unknown;
  readonly count?: Tensor;
}

type LossArguments = readonly [
  params: unknown,
  state: unknown,
  batch: BatchTree,
  key: Tensor | undefined,
  whole?: unknown,
];

const tensorsOf = ([loss, state, ofRows]: LossResult<unknown>): LossTensors => {
  if (ofRows === undefined) return { terms: { loss }, state };
  const { count, ...terms } = ofRows;
  return { terms, state, count };
};

const resultOf = ({ terms, state, count }: LossTensors): LossResult<unknown> =>
  "loss" in terms ? [terms.loss, state] : lossResult({ ...terms, count: count! }, state);

/** Whether derivatives of the user's own are in a function: with values that carry one, or in operators. */
const hasOwnDerivatives = ({ graph, hasOwnDerivatives: marked }: Traced): boolean =>
  marked || graph.nodes.some(({ op }) => isUsersOperator(op));

/**
 * Trace a model for each rank's part of a job's batches.
 *
 * @throws what the model's functions throw; ConfigError where its loss does not do what the job says of it, or where
 * nothing can be shown of samples that the job wants to be.
 */
export const traceModel = (
  plain: AnyModel,
  data: Pick<TrainingData, "train" | "test" | "predicts" | "classes">,
  job: Job,
): TracedModel => {
  const { train, test } = data;
  requireSmoothing(plain, { train }, job);
  const model = withSmoothing(plain, job);
  const mesh = meshOf(job);
  const key = randomKey(0) as unknown as Tensor;
  const init = trace((own: Tensor) => model.init(own), [key], { mesh });
  const { params, state } = resultSpecs<Weights>(init);
  requireLogits(plain, data, job, { params, state });
  const samples = batchSpecs(train, samplesAtOnce(job)) as never;
  const numParts = job.accumulate ?? 1;
  /** @param whole nothing, or the state of the whole batch. */
  const traceLoss = (...whole: readonly unknown[]): TracedLoss => {
    const lossOf = (...[own, moved, batch, fresh, known]: LossArguments): LossTensors =>
      tensorsOf(
        model.loss(own, moved, batch, {
          train: true,
          key: fresh!,
          ...(known !== undefined && { whole: { state: known, numParts } }),
        }),
      );
    const args = [params, state, samples, key, ...whole] as never;
    const value = trace(lossOf, args, { mesh });
    const { terms } = resultSpecs<LossTensors>(value);
    const pullback = trace(
      (cotangents: LossTensors["terms"], own: unknown, ...rest: readonly unknown[]) =>
        vjp((each: unknown) => lossOf(...([each, ...rest] as unknown as LossArguments)).terms, own).pullback(
          cotangents,
        ),
      [terms, ...(args as readonly unknown[])] as never,
      { mesh },
    );
    return { value: composed(value), ...(hasOwnDerivatives(value) && { pullback: composed(pullback) }) };
  };
  const joinParts =
    model.joinParts === undefined
      ? undefined
      : trace(
          (parts: StatesOfParts<unknown>) => model.joinParts!(parts),
          [{ before: state, earlier: state, own: state, numEarlier: { dtype: "u32", shape: [] } } as never],
          { mesh },
        );
  const heldOut = evaluationBatch(job, test.count) / numBatchParts(job);
  const evaluate = trace(
    (own: unknown, moved: unknown, batch: BatchTree) => model.evaluate(own, moved, batch),
    [params, state, { ...batchSpecs(test, heldOut), mask: { dtype: "bool", shape: [heldOut] } } as never],
    { mesh },
  );
  const outputs = samplePassOf(job, plain, data, { params, state });
  return {
    init: composed(init),
    loss: traceLoss(),
    ...(numParts > 1 && model.needsWhole === true && { lossOfPart: traceLoss(state) }),
    ...(joinParts !== undefined && { joinParts: composed(joinParts) }),
    evaluate: composed(evaluate),
    ...(outputs !== undefined && { outputs: composed(outputs) }),
    ...(plain.logits !== undefined && { logits: plain.logits }),
    ...(plain.metrics !== undefined && { metrics: plain.metrics }),
  };
};

const call = <Result>({ graph, outputs }: Traced, ...args: readonly unknown[]): Result =>
  unflattenTree<Result>(outputs, replay(graph, flattenTree<Tensor>(args).leaves));

/**
 * The model of those graphs, for batches of the job's shapes. Training asks for the loss and for the metrics; its
 * `apply` is for what shows samples, one at a time.
 */
export const modelOf = ({
  init,
  loss,
  lossOfPart,
  joinParts,
  evaluate,
  outputs,
  logits,
  metrics,
}: TracedModel): AnyModel => {
  // What the pullback computes again of the loss is computed once: equal nodes are merged.
  const differentiable = ({ value, pullback }: TracedLoss): ((...args: LossArguments) => LossTensors) => {
    const lossOf = (...args: LossArguments): LossTensors => call(value, ...args);
    return pullback === undefined
      ? lossOf
      : customGradient(
          lossOf,
          ({ args, cotangents: { terms } }) =>
            [call<unknown>(pullback, terms, ...args), ...args.slice(1).map(() => undefined)] as never,
        );
  };
  return {
    init: (key) => call<ReturnType<AnyModel["init"]>>(init, key),
    apply: (params, state, inputs) => {
      if (outputs === undefined)
        throw new InvariantError("a traced model was applied; its loss and its metrics are all that was traced");
      return [call<Tensor>(outputs, params, state, inputs), state];
    },
    loss: (params, state, batch, { key, whole }) => {
      const own = [params, state, batch as BatchTree, key] as const;
      return resultOf(
        whole === undefined || lossOfPart === undefined
          ? differentiable(loss)(...own)
          : differentiable(lossOfPart)(...own, whole.state),
      );
    },
    ...(joinParts !== undefined && {
      needsWhole: lossOfPart !== undefined,
      joinParts: (parts) => call<unknown>(joinParts, parts),
    }),
    evaluate: (params, state, batch) => call<Metrics>(evaluate, params, state, batch),
    ...(logits !== undefined && { logits }),
    ...(metrics !== undefined && { metrics }),
  };
};
