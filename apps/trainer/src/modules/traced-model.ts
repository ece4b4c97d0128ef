import { type Job, meshOf, numBatchParts, samplesAtOnce } from "@skein/job/node";
import {
  type LogitsFacts,
  type LossResult,
  lossResult,
  type LossSum,
  type Metrics,
  type Ratio,
  type MicrobatchStates,
} from "@skein/models";
import {
  type AnyModel,
  batchSpecs,
  type BatchTree,
  evaluationBatch,
  requireSmoothing,
  resultSpecs,
  samplePassOf,
  type TrainingData,
  type Weights,
  withSmoothing,
} from "@skein/step/node";
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
import { isUserOperator, replay } from "@skein/tensor-core/backend";
import { requireLogits } from "./checked-logits.ts";
import { composed } from "./composed-graph.ts";

/** Graphs of a traced loss function and, if user-defined, of its derivatives. */
interface TracedLoss {
  /** Graph of the loss function, which returns `LossTensors`. */
  readonly value: Traced;
  /**
   * Graph that computes the gradients of the parameters, from the arguments of the loss and the cotangents of its
   * terms. Absent: the loss has no user-defined derivatives, so gradients are derived from `value`.
   */
  readonly pullback?: Traced;
}

/**
 * A model as plain data: the graphs of its functions, for the shapes of one job. Unlike functions of a program, these
 * graphs can be sent to the threads of ranks, where they compute the same results.
 */
export interface TracedModel {
  readonly init: Traced;
  readonly loss: TracedLoss;
  /**
   * Loss of one microbatch, as a function that also receives the model state after the complete batch. Absent: batches
   * are not split, or the model's loss does not need this state.
   */
  readonly lossOfPart?: TracedLoss;
  /**
   * Graph that joins the state after one more microbatch with the joined state of the earlier microbatches, see
   * `MicrobatchStates`. Absent: the model does not join states.
   */
  readonly joinParts?: Traced;
  readonly evaluate: Traced;
  /**
   * Graph that computes the outputs for a held-out sample, from parameters, state and inputs. Absent: the job shows no
   * samples, or the model is sharded over ranks.
   */
  readonly outputs?: Traced;
  readonly logits?: LogitsFacts;
  readonly metrics?: Readonly<Record<string, Ratio>>;
}

/** Tensors that a loss returns. Gradients flow only through `terms`. */
interface LossTensors {
  /** Mean loss, or the loss sum and the auxiliary terms from which the loss is computed. */
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

/** Whether a function uses user-defined derivatives of values or of operators. */
const hasOwnDerivatives = ({ graph, hasOwnDerivatives: marked }: Traced): boolean =>
  marked || graph.nodes.some(({ op }) => isUserOperator(op));

/**
 * Traces the functions of a model. Batches have the shapes of one rank's share of a batch.
 *
 * @throws errors of the model's functions; ConfigError if the loss does not match the job, or if the samples that the
 * job requests cannot be shown.
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
  /**
   * Traces the loss function.
   * @param whole empty, or one element: specs of the state after the complete batch, for a loss of one microbatch.
   */
  const traceLoss = (...whole: readonly unknown[]): TracedLoss => {
    const lossOf = (...[own, modelState, batch, fresh, known]: LossArguments): LossTensors =>
      tensorsOf(
        model.loss(own, modelState, batch, {
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
          (parts: MicrobatchStates<unknown>) => model.joinParts!(parts),
          [{ before: state, earlier: state, own: state, numEarlier: { dtype: "u32", shape: [] } } as never],
          { mesh },
        );
  const heldOut = evaluationBatch(job, test.count) / numBatchParts(job);
  const evaluate = trace(
    (own: unknown, modelState: unknown, batch: BatchTree) => model.evaluate(own, modelState, batch),
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
 * Builds a model from traced graphs, for batches with the shapes of the job. Training uses `loss` and `evaluate`.
 * `apply` is used only to show samples, one sample at a time.
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
  // Nodes that the pullback and the loss have in common are computed only once, because equal nodes are merged.
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
        throw new InvariantError("a traced model was applied, but only its loss and its metrics were traced");
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
