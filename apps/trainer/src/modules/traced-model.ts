import type { Records } from "@skein/data";
import type { LabelledBatch, Metrics, Model } from "@skein/models";
import {
  flattenTree,
  InvariantError,
  randomKey,
  replay,
  type Tensor,
  type TensorSpec,
  trace,
  type Traced,
  unflattenTree,
} from "@skein/tensor-core";
import { evaluationBatch } from "../evaluate.ts";
import type { Job } from "../job.ts";
import type { DataSet } from "./task.ts";
import { meshOf } from "../train-state.ts";

/**
 * A model as plain data, in the shapes of one job: the graphs of its functions. What a program made of functions cannot be sent to the threads of its
 * ranks; this can, and computes the same.
 */
export interface TracedModel {
  readonly init: Traced;
  readonly loss: Traced;
  readonly evaluate: Traced;
}

const batchSpecs = ({ fields }: Records, count: number): { readonly [field: string]: TensorSpec } =>
  Object.fromEntries(Object.entries(fields).map(([name, { dtype, shape }]) => [name, { dtype, shape: [count, ...shape] }]));

/** Trace a model for each rank's part of a job's batches. @throws what the model's functions throw. */
export const traceModel = (model: Model, { train, test }: Pick<DataSet, "train" | "test">, job: Job): TracedModel => {
  const { batch, ranks } = job;
  const mesh = meshOf(job);
  const key = randomKey(0) as unknown as Tensor;
  const init = trace((own: Tensor) => model.init(own), [key], { mesh });
  const first = unflattenTree<{ params: unknown; state: unknown }>(
    init.outputs,
    init.graph.outputs.map(({ node, output }) => init.graph.nodes[node]!.specs[output]!),
  );
  const loss = trace(
    (params: unknown, state: unknown, samples: LabelledBatch, own: Tensor) => model.loss(params, state, samples, { train: true, key: own }),
    [first.params, first.state, batchSpecs(train, batch / ranks) as never, key],
    { mesh },
  );
  const heldOut = evaluationBatch(job, test.count) / ranks;
  const held = { ...batchSpecs(test, heldOut), mask: { dtype: "bool", shape: [heldOut] } };
  const evaluate = trace(
    (params: unknown, state: unknown, samples: LabelledBatch) => model.evaluate(params, state, samples),
    [first.params, first.state, held as never],
    { mesh },
  );
  return { init, loss, evaluate };
};

const call = <Result>({ graph, outputs }: Traced, ...args: unknown[]): Result =>
  unflattenTree<Result>(outputs, replay(graph, flattenTree<Tensor>(args).leaves));

/** The model of those graphs, for batches of the job's shapes. It has no `apply`: training asks for the loss and for the metrics. */
export const modelOf = ({ init, loss, evaluate }: TracedModel): Model => ({
  init: (key) => call<ReturnType<Model["init"]>>(init, key),
  apply: () => {
    throw new InvariantError("a traced model was applied; its loss and its metrics are all that was traced");
  },
  loss: (params, state, batch, { key }) => call<readonly [Tensor, unknown]>(loss, params, state, batch, key),
  evaluate: (params, state, batch) => call<Metrics>(evaluate, params, state, batch),
});
