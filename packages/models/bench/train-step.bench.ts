// Measures the time of a training step of each model on one core. Run: node bench/train-step.bench.ts
import { createCpuBackend } from "@skein/cpu-kernels";
import {
  adam,
  applyUpdates,
  type DeviceArray,
  jit,
  type NdArray,
  randomKey,
  type Tensor,
  trace,
  valueAndGradWithAux,
} from "@skein/tensor-core";
import { graphCost } from "@skein/tensor-core/backend";
import { measure, printMeasurement } from "@skein/measuring";
import { uniformArray } from "@skein/testing";
import { cnn, gpt, type LabelledBatch, mlp, type Model, resnet18 } from "../src/index.ts";

interface Row {
  readonly name: string;
  readonly model: Model;
  readonly inputs: NdArray;
  readonly labels: NdArray;
  readonly numClasses: number;
}

const classes = (count: number): NdArray => uniformArray([count], 0, 10, 2, "i32");
const tokens = (seed: number): NdArray => uniformArray([8, 128], 0, 256, seed, "i32");

const rows: readonly Row[] = [
  {
    name: "mlp 784-512-512-10, batch 64",
    model: mlp({ sizes: [784, 512, 512, 10] }),
    inputs: uniformArray([64, 784], 0, 1),
    labels: classes(64),
    numClasses: 10,
  },
  {
    name: "cnn 28×28, batch 64",
    model: cnn(),
    inputs: uniformArray([64, 28, 28, 1], 0, 1),
    labels: classes(64),
    numClasses: 10,
  },
  {
    name: "resnet18 32×32, batch 8",
    model: resnet18(),
    inputs: uniformArray([8, 32, 32, 3], 0, 1),
    labels: classes(8),
    numClasses: 10,
  },
  {
    name: "gpt 4 layers of 128, 8×128 bytes",
    model: gpt({ contextLength: 128, width: 128, numLayers: 4, numHeads: 4 }),
    inputs: tokens(1),
    labels: tokens(2),
    numClasses: 256,
  },
];

const optimizer = adam({ learningRate: 1e-3 });

interface State {
  readonly params: unknown;
  readonly model: unknown;
  readonly optim: ReturnType<typeof optimizer.init>;
}

for (const { name, model, inputs, labels, numClasses } of rows) {
  const backend = await createCpuBackend();
  const begin = (key: Tensor): State => {
    const { params, state } = model.init(key);
    return { params, model: state, optim: optimizer.init(params) };
  };
  const train = (state: State, batch: LabelledBatch): { state: State; loss: Tensor } => {
    const [loss, next, gradients] = valueAndGradWithAux(model.loss)(state.params, state.model, batch, { train: true });
    const [updates, optim] = optimizer.update(gradients, state.optim, { params: state.params });
    return { state: { params: applyUpdates(state.params, updates), model: next, optim }, loss };
  };
  const step = jit(train, backend, { donate: [0] });
  const batch = { inputs: backend.upload(inputs), labels: backend.upload(labels) };
  let state = (await jit(begin, backend)(randomKey(1))) as Parameters<typeof step>[0];
  const { flops } = graphCost(trace(train, [state, batch] as never).graph);
  const advance = async (): Promise<DeviceArray> => {
    const next = (await step(state, batch)) as unknown as { state: typeof state; loss: DeviceArray };
    state = next.state;
    return next.loss;
  };
  const lossNow = async (): Promise<number> => (await backend.download(await advance())).item();

  const losses: number[] = [];
  for (let i = 0; i < 10; i++) losses.push(await lossNow());
  if (!(Math.abs(losses[0]! - Math.log(numClasses)) < 0.1))
    throw new Error(
      `${name}: the first loss is ${losses[0]}, but ${numClasses} equally likely classes give ${Math.log(numClasses)}`,
    );
  if (!(losses.at(-1)! < 0.9 * losses[0]!))
    throw new Error(`${name}: ten steps on one batch do not lower the loss: ${losses.join(" ")}`);
  printMeasurement(name, await measure(async () => backend.free(await advance()), { samples: 11 }), {
    amount: flops,
    unit: "FLOP",
  });
}
