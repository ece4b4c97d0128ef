import type { LogitsFacts, Metrics, Ratio } from "@skein/models";
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
import { evaluationBatch } from "../rank/evaluate.ts";
import type { Job } from "../job/job.ts";
import { requireSmoothing, withSmoothing } from "../building/label-smoothing.ts";
import { meshOf, numBatchParts, samplesAtOnce } from "../step/mesh.ts";
import { requireLogits } from "./checked-logits.ts";
import { composed } from "./composed-graph.ts";
import type { Weights } from "./forward-pass.ts";
import { resultSpecs } from "./result-specs.ts";
import { samplePassOf } from "./sample-pass.ts";
import { batchSpecs, type TrainingData, type AnyModel, type BatchTree } from "./task.ts";

/**
 * A model as plain data, in the shapes of one job: the graphs of its functions. What a program made of functions cannot
 * be sent to the threads of its ranks; this can, and computes the same.
 */
export interface TracedModel {
  readonly init: Traced;
  readonly loss: Traced;
  /**
   * From the arguments of the loss and its cotangent to the gradients of the parameters, where the loss has derivatives
   * of the user's own: they are in no other graph.
   */
  readonly pullback?: Traced;
  readonly evaluate: Traced;
  /**
   * From parameters, state and the inputs of one held-out sample to the outputs, where the job shows what the model
   * makes of samples and ranks do not share it out.
   */
  readonly outputs?: Traced;
  readonly logits?: LogitsFacts;
  readonly metrics?: Readonly<Record<string, Ratio>>;
}

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
  const loss = trace(
    (own: unknown, moved: unknown, batch: BatchTree, fresh: Tensor) =>
      model.loss(own, moved, batch, { train: true, key: fresh }),
    [params, state, samples, key],
    { mesh },
  );
  const pullback = trace(
    (own: unknown, moved: unknown, batch: BatchTree, fresh: Tensor, cotangent: Tensor) =>
      vjp((each: unknown) => model.loss(each, moved, batch, { train: true, key: fresh })[0], own).pullback(cotangent),
    [params, state, samples, key, { dtype: "f32", shape: [] } as never],
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
    loss: composed(loss),
    ...(hasOwnDerivatives(loss) && { pullback: composed(pullback) }),
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
export const modelOf = ({ init, loss, pullback, evaluate, outputs, logits, metrics }: TracedModel): AnyModel => {
  type LossArguments = readonly [params: unknown, state: unknown, batch: BatchTree, key: Tensor | undefined];
  // What the pullback computes again of the loss is computed once: equal nodes are merged.
  const lossOf = (...args: LossArguments): readonly [Tensor, unknown] => call(loss, ...args);
  const differentiable =
    pullback === undefined
      ? lossOf
      : customGradient(
          lossOf,
          ({ args, cotangents: [cotangent] }) =>
            [call<unknown>(pullback, ...args, cotangent), undefined, undefined, undefined] as never,
        );
  return {
    init: (key) => call<ReturnType<AnyModel["init"]>>(init, key),
    apply: (params, state, inputs) => {
      if (outputs === undefined)
        throw new InvariantError("a traced model was applied; its loss and its metrics are all that was traced");
      return [call<Tensor>(outputs, params, state, inputs), state];
    },
    loss: (params, state, batch, { key }) => differentiable(params, state, batch as BatchTree, key),
    evaluate: (params, state, batch) => call<Metrics>(evaluate, params, state, batch),
    ...(logits !== undefined && { logits }),
    ...(metrics !== undefined && { metrics }),
  };
};
