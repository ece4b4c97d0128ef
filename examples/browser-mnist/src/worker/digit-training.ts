import { evaluationBatches, gatherBatch, type Records, takeRecords, trainingBatches } from "@skein/data";
import { cnn, type LabelledBatch, mlp, type Model } from "@skein/models";
import {
  adam,
  applyUpdates,
  argmax,
  type Backend,
  type DeviceArray,
  elementCount,
  flattenTree,
  jit,
  leafPaths,
  type NdArray,
  randomKey,
  reduceMax,
  softmax,
  type Tensor,
  valueAndGradWithAux,
  writeSafetensors,
} from "@skein/tensor-core";
import type { ModelName, Readings, Settings } from "../messages.ts";

const models: Readonly<Record<ModelName, () => Model>> = { cnn: () => cnn(), mlp: () => mlp({ sizes: [784, 256, 10] }) };

type Digits = Readonly<Record<"inputs" | "labels", NdArray>>;

/** Everything that a step moves: parameters, the model's own state, the optimizer's. */
interface Run {
  readonly params: unknown;
  readonly state: unknown;
  readonly optim: unknown;
}

/** Test digits that are read at once. */
const evaluationBatchSize = 250;

export interface DigitRecords {
  readonly train: Records;
  readonly test: Records;
}

/**
 * One training of a digit reader on a backend: Adam on cross-entropy. Its arrays are the current `Run` and nothing else; each step is
 * given the last one's memory.
 */
export class DigitTraining {
  /** Steps done. */
  stepCount = 0;
  private readonly batches;
  private run: Run | undefined;
  private readonly backend: Backend;
  private readonly records: DigitRecords;
  private readonly settings: Settings;
  private readonly compiled;

  private constructor(backend: Backend, records: DigitRecords, settings: Settings) {
    this.backend = backend;
    this.records = records;
    this.settings = settings;
    const { batchSize, seed } = settings;
    this.batches = trainingBatches(records.train.count, { batchSize, seed, rank: 0, worldSize: 1 });
    this.compiled = compileSteps(models[settings.model](), backend);
  }

  /** First parameters, from the settings' seed. */
  static async begin(backend: Backend, records: DigitRecords, settings: Settings): Promise<DigitTraining> {
    const training = new DigitTraining(backend, records, settings);
    training.run = await training.compiled.init(randomKey(settings.seed));
    return training;
  }

  get parameterCount(): number {
    return flattenTree<DeviceArray>(this.run!.params).leaves.reduce((count, { shape }) => count + elementCount(shape), 0);
  }

  /** Start one step. @returns its loss as a promise of its own: it arrives when the device has come that far, and the next step need not wait for it. */
  async step(): Promise<{ readonly loss: Promise<number> }> {
    const { indices } = this.batches.next().value;
    const { run, loss } = await this.compiled.train(this.run!, gatherBatch(this.records.train, indices) as Digits);
    this.run = run;
    this.stepCount++;
    return { loss: this.take(loss).then((array) => array.item()) };
  }

  /** Share of the test digits that the model reads right. */
  async accuracy(): Promise<number> {
    const { params, state } = this.run!;
    let right = 0;
    for (const { batch, mask } of evaluationBatches(this.records.test, { batchSize: evaluationBatchSize, rank: 0, worldSize: 1 })) {
      const { correct, ...rest } = await this.compiled.evaluate(params, state, { ...(batch as Digits), mask });
      for (const metric of Object.values(rest)) this.backend.free(metric);
      right += (await this.take(correct)).item();
    }
    return right / this.records.test.count;
  }

  /** What the model reads in the first `count` test digits. */
  async read(count: number): Promise<Readings> {
    const { params, state } = this.run!;
    const { fields } = takeRecords(this.records.test, count);
    const inputs = gatherBatch(
      { count, fields },
      Array.from({ length: count }, (_, i) => i),
    )["inputs"]!;
    const { classes, confidences } = await this.compiled.read(params, state, inputs);
    return {
      classes: Int32Array.from((await this.take(classes)).toNumbers()),
      confidences: Float32Array.from((await this.take(confidences)).toNumbers()),
    };
  }

  /** The parameters as a safetensors file, under their paths: `conv1.weight`. */
  async save(): Promise<Uint8Array<ArrayBuffer>> {
    const { leaves } = flattenTree<DeviceArray>(this.run!.params);
    const arrays = await Promise.all(leaves.map((leaf) => this.backend.download(leaf)));
    const names = leafPaths(this.run!.params);
    const { model, batchSize, seed } = this.settings;
    return writeSafetensors(new Map(arrays.map((array, i) => [names[i]!, array])), {
      model,
      steps: String(this.stepCount),
      batchSize: String(batchSize),
      seed: String(seed),
    });
  }

  /** Give back all that this training holds on the backend. */
  release(): void {
    for (const leaf of flattenTree<DeviceArray>(this.run).leaves) this.backend.free(leaf);
    this.run = undefined;
    for (const compiled of Object.values(this.compiled)) compiled.release();
  }

  private async take(array: DeviceArray): Promise<NdArray> {
    try {
      return await this.backend.download(array);
    } finally {
      this.backend.free(array);
    }
  }
}

const compileSteps = (model: Model, backend: Backend) => {
  const optimizer = adam({ learningRate: 1e-3 });
  const init = (key: Tensor): Run => {
    const { params, state } = model.init(key);
    return { params, state, optim: optimizer.init(params) };
  };
  const train = ({ params, state, optim }: Run, batch: LabelledBatch): { run: Run; loss: Tensor } => {
    const [loss, nextState, gradients] = valueAndGradWithAux(model.loss)(params, state, batch, { train: true });
    const [updates, nextOptim] = optimizer.update(gradients, optim as never, { params });
    return { run: { params: applyUpdates(params, updates), state: nextState, optim: nextOptim }, loss };
  };
  const read = (params: unknown, state: unknown, images: Tensor): { classes: Tensor; confidences: Tensor } => {
    const [logits] = model.apply(params, state, images, { train: false });
    return { classes: argmax(logits, { dim: -1 }), confidences: reduceMax(softmax(logits), { dims: -1 }) };
  };
  return {
    init: jit(init, backend),
    train: jit(train, backend, { donate: [0] }), // the old state's memory becomes the new state's
    evaluate: jit(model.evaluate, backend),
    read: jit(read, backend),
  };
};
