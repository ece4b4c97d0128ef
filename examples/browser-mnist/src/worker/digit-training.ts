import { evaluationBatches, gatherBatch, mnistClasses, type Records, takeRecords, trainingBatches } from "@skein/data";
import {
  type Aggregator,
  exchange,
  identityCompressor,
  initExchange,
  topKCompressor,
  withErrorFeedback,
} from "@skein/compressors";
import { cnn, type LabelledBatch, mlp, type Model } from "@skein/models";
import {
  adam,
  applyUpdates,
  type Backend,
  type Communicator,
  type DeviceArray,
  elementCount,
  flattenTree,
  jit,
  leafPaths,
  type NdArray,
  randomKey,
  softmax,
  type Tensor,
  valueAndGradWithAux,
  writeSafetensors,
} from "@skein/tensor-core";
import type { CompressionName, ModelName, Readings, Settings } from "../messages.ts";

const models: Readonly<Record<ModelName, () => Model>> = {
  cnn: () => cnn(),
  mlp: () => mlp({ sizes: [784, 256, 10] }),
};

/**
 * Functions that create compressors, by name. Top-k sends the largest 1 % of a gradient immediately; the other
 * entries accumulate and are sent when they are large enough.
 */
const compressors: Readonly<Record<CompressionName, () => Aggregator<unknown>>> = {
  none: () => identityCompressor() as Aggregator<unknown>,
  "top-k": () => withErrorFeedback(topKCompressor({ density: 0.01 })) as Aggregator<unknown>,
};

/** Name of the mesh axis over which each batch is divided among ranks. */
const axis = "data";

type Digits = Readonly<Record<"inputs" | "labels", NdArray>>;

/**
 * State updated by a step: parameters, state of the model, state of the optimizer, and residuals of the compressors.
 */
interface Run {
  readonly params: unknown;
  readonly state: unknown;
  readonly optim: unknown;
  readonly residuals: unknown;
}

/** Batch size of evaluations. */
const evaluationBatchSize = 250;

export interface DigitRecords {
  readonly train: Records;
  readonly test: Records;
}

export interface TrainingContext {
  readonly backend: Backend;
  readonly records: DigitRecords;
  readonly settings: Settings;
  /** Communicator with the other rank. Absent: there is a single rank. */
  readonly communicator?: Communicator;
}

/**
 * Training run of a digit classifier on a backend: Adam on the cross-entropy, with gradients averaged over ranks. Only
 * the arrays of the current `Run` are in backend memory; each step reuses the memory of the previous step.
 */
export class DigitTraining {
  /** Number of completed steps. */
  stepCount = 0;
  private readonly batches;
  private run: Run | undefined;
  private readonly backend: Backend;
  private readonly records: DigitRecords;
  private readonly settings: Settings;
  private readonly communicator: Communicator | undefined;
  private readonly compiled;

  private constructor({ backend, records, settings, communicator }: TrainingContext) {
    this.backend = backend;
    this.records = records;
    this.settings = settings;
    this.communicator = communicator;
    const { batchSize, seed } = settings;
    const { rank = 0, worldSize = 1 } = communicator ?? {};
    this.batches = trainingBatches(records.train.count, { batchSize, seed, rank, worldSize });
    this.compiled = compileSteps(settings, backend, communicator);
  }

  /** Initializes the parameters from the seed in the settings. All ranks have equal parameters. */
  static async begin(context: TrainingContext): Promise<DigitTraining> {
    const training = new DigitTraining(context);
    training.run = await training.compiled.init(randomKey(context.settings.seed));
    return training;
  }

  /** Number of bytes sent by this rank. */
  get bytesSent(): number {
    return this.communicator?.bytesSent() ?? 0;
  }

  get parameterCount(): number {
    return flattenTree<DeviceArray>(this.run!.params).leaves.reduce(
      (count, { shape }) => count + elementCount(shape),
      0,
    );
  }

  /**
   * Starts one step.
   *
   * @returns a promise of the loss, which resolves when the device has computed the loss. The next step can start
   * before.
   */
  async step(): Promise<{ readonly loss: Promise<number> }> {
    const { indices } = this.batches.next().value;
    const { run, loss } = await this.compiled.train(this.run!, gatherBatch(this.records.train, indices) as Digits);
    this.run = run;
    this.stepCount++;
    return { loss: this.take(loss).then((array) => array.item()) };
  }

  /** Computes the accuracy on the test digits. */
  async accuracy(): Promise<number> {
    const { params, state } = this.run!;
    let right = 0;
    for (const { batch, mask } of evaluationBatches(this.records.test, {
      batchSize: evaluationBatchSize,
      rank: 0,
      worldSize: 1,
    })) {
      const { correct, ...rest } = await this.compiled.evaluate(params, state, { ...(batch as Digits), mask });
      for (const metric of Object.values(rest)) this.backend.free(metric);
      right += (await this.take(correct)).item();
    }
    return right / this.records.test.count;
  }

  /** Returns the predictions for the first `count` test digits. */
  async read(count: number): Promise<Readings> {
    const probabilities = await this.probabilities(takeRecords(this.records.test, count));
    const perDigit = Array.from({ length: count }, (_, i) =>
      probabilities.subarray(i * mnistClasses, (i + 1) * mnistClasses),
    );
    const confidences = perDigit.map((classes) => Math.max(...classes));
    return {
      classes: Int32Array.from(perDigit.map((classes, i) => classes.indexOf(confidences[i]!))),
      confidences: Float32Array.from(confidences),
    };
  }

  /** Returns the class probabilities for one image of 28 × 28 bytes. */
  async readPicture(pixels: Uint8Array): Promise<Float32Array> {
    const field = this.records.test.fields["inputs"]!;
    return this.probabilities({ count: 1, fields: { inputs: { ...field, bytes: pixels, offsetBytes: 0 } } });
  }

  /** Returns class probabilities, [images, classes], flattened. */
  private async probabilities({ count, fields }: Records): Promise<Float32Array> {
    const { params, state } = this.run!;
    const first = Array.from({ length: count }, (_, i) => i);
    const inputs = gatherBatch({ count, fields: { inputs: fields["inputs"]! } }, first)["inputs"]!;
    return Float32Array.from((await this.take(await this.compiled.read(params, state, inputs))).toNumbers());
  }

  /** Returns the parameters as a safetensors file. Tensors are named by parameter path, such as `conv1.weight`. */
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

  /** Frees all backend arrays of this training run. */
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

const compileSteps = (settings: Settings, backend: Backend, communicator: Communicator | undefined) => {
  const model = models[settings.model]();
  const optimizer = adam({ learningRate: 1e-3 });
  const compressor = compressors[settings.compression]();
  const alone = communicator === undefined;
  const init = (key: Tensor): Run => {
    const { params, state } = model.init(key);
    return {
      params,
      state,
      optim: optimizer.init(params),
      residuals: alone ? [] : initExchange(params, { compressor }),
    };
  };
  const train = ({ params, state, optim, residuals }: Run, batch: LabelledBatch): { run: Run; loss: Tensor } => {
    const [loss, nextState, gradients] = valueAndGradWithAux(model.loss)(params, state, batch, { train: true });
    const [mean, nextResiduals] = alone
      ? [gradients, residuals]
      : exchange(gradients, residuals as unknown[], { axis, compressor });
    const [updates, nextOptim] = optimizer.update(mean, optim as never, { params });
    return {
      run: { params: applyUpdates(params, updates), state: nextState, optim: nextOptim, residuals: nextResiduals },
      loss,
    };
  };
  const read = (params: unknown, state: unknown, images: Tensor): Tensor =>
    softmax(model.apply(params, state, images, { train: false })[0]);
  return {
    init: jit(init, backend),
    // The new state reuses the memory of the old state.
    train: jit(train, backend, { donate: [0], ...(communicator && { communicators: { [axis]: communicator } }) }),
    evaluate: jit(model.evaluate, backend),
    read: jit(read, backend),
  };
};
