// Trains an MLP on MNIST for 300 steps on one thread, with the model and data packages, and counts correct answers on
// held-out digits.
import { createCpuBackend } from "@skein/cpu-kernels";
import { evaluationBatches, gatherBatch, takeRecords, trainingBatches } from "@skein/data";
import { loadMnist } from "@skein/data/node";
import { type LabelledBatch, mlp } from "@skein/models";
import {
  applyUpdates,
  jit,
  momentum,
  type NdArray,
  randomKey,
  type Tensor,
  valueAndGradWithAux,
} from "@skein/tensor-core";

type Digits = Readonly<Record<"inputs" | "labels", NdArray>>;

const { train, test } = loadMnist({ from: import.meta.url });
const model = mlp({ sizes: [784, 128, 10] });
const optimizer = momentum({ learningRate: 0.05 });
const backend = await createCpuBackend();

const start = (key: Tensor) => {
  const { params, state } = model.init(key);
  return { params, state, optim: optimizer.init(params) };
};
const step = jit(
  ({ params, state, optim }: ReturnType<typeof start>, batch: LabelledBatch) => {
    const [loss, nextState, gradients] = valueAndGradWithAux(model.loss)(params, state, batch, { train: true });
    const [updates, nextOptim] = optimizer.update(gradients, optim, { params });
    return { loss, run: { params: applyUpdates(params, updates), state: nextState, optim: nextOptim } };
  },
  backend,
  { donate: [0] },
);

let run = await jit(start, backend)(randomKey(7));
let done = 0;
for (const { indices } of trainingBatches(train.count, { batchSize: 64, seed: 7, rank: 0, worldSize: 1 })) {
  const next = await step(run, gatherBatch(train, indices) as Digits);
  run = next.run;
  done++;
  if (done % 100 === 0) console.log(`step ${done}: loss ${(await backend.download(next.loss)).item().toFixed(4)}`);
  backend.free(next.loss);
  if (done === 300) break;
}

const count = jit(model.evaluate, backend);
let correct = 0;
const heldOut = takeRecords(test, 2000);
for (const { batch, mask } of evaluationBatches(heldOut, { batchSize: 500, rank: 0, worldSize: 1 })) {
  const metrics = await count(run.params, run.state, { ...(batch as Digits), mask });
  correct += (await backend.download(metrics.correct)).item();
  for (const metric of Object.values(metrics)) backend.free(metric);
}
console.log(`${correct} of ${heldOut.count} held-out digits read right`);
if (correct < 0.85 * heldOut.count) throw new Error("training went wrong");
