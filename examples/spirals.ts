// Trains a small network to classify two spirals on the CPU backend: WebAssembly SIMD, one compiled graph per step.
import { createCpuBackend } from "@skein/cpu-kernels";
import {
  adam,
  add,
  applyUpdates,
  crossEntropy,
  evaluate,
  jit,
  matmul,
  NdArray,
  normal,
  randomKey,
  splitKey,
  type Tensor,
  tanh,
  valueAndGrad,
} from "@skein/tensor-core";

type Params = Readonly<Record<"w1" | "b1" | "w2" | "b2" | "w3" | "b3", Tensor>>;

const pointsPerArm = 100;
const width = 32;

const points = Array.from({ length: 2 * pointsPerArm }, (_, i) => {
  const arm = i % 2;
  const turn = (i >> 1) / pointsPerArm;
  const angle = 3.5 * turn * Math.PI + arm * Math.PI;
  return { x: [turn * Math.cos(angle), turn * Math.sin(angle)], arm };
});
const inputs = NdArray.from(
  points.flatMap(({ x }) => x),
  [points.length, 2],
);
const labels = NdArray.from(
  points.map(({ arm }) => arm),
  [points.length],
  "i32",
);

const logits = (params: Params, x: Tensor): Tensor => {
  const hidden = tanh(add(matmul(x, params.w1), params.b1));
  return add(matmul(tanh(add(matmul(hidden, params.w2), params.b2)), params.w3), params.b3);
};
const loss = (params: Params, x: Tensor, y: Tensor): Tensor => crossEntropy(logits(params, x), y);

const optimizer = adam({ learningRate: 0.01 });
const start = (key: Tensor) => {
  const [k1, k2, k3, k4, k5, k6] = splitKey(key, 6); // a reused key would draw the same numbers
  const params: Params = {
    w1: normal(k1!, [2, width]),
    b1: normal(k2!, [width], { deviation: 0.1 }),
    w2: normal(k3!, [width, width], { deviation: width ** -0.5 }),
    b2: normal(k4!, [width], { deviation: 0.1 }),
    w3: normal(k5!, [width, 2], { deviation: width ** -0.5 }),
    b3: normal(k6!, [2], { deviation: 0.1 }),
  };
  return { params, optim: optimizer.init(params) };
};

const backend = await createCpuBackend();
const train = jit(
  (state: ReturnType<typeof start>, x: Tensor, y: Tensor) => {
    const [value, gradients] = valueAndGrad(loss)(state.params, x, y);
    const [updates, optim] = optimizer.update(gradients, state.optim, { params: state.params });
    return { loss: value, state: { params: applyUpdates(state.params, updates), optim } };
  },
  backend,
  { donate: [0] }, // the new state reuses the memory of the old state
);

let state = await jit(start, backend)(randomKey(1));
for (let step = 0; step <= 500; step++) {
  const next = await train(state, inputs, labels);
  state = next.state;
  if (step % 100 === 0) console.log(`step ${step}: loss ${(await backend.download(next.loss)).item().toFixed(4)}`);
  backend.free(next.loss);
}

const scores = (await evaluate(logits, backend)(state.params, inputs)).toNumbers();
const correct = points.filter(({ arm }, i) => Number(scores[2 * i + 1]! > scores[2 * i]!) === arm).length;
console.log(`${correct} of ${points.length} points on the right spiral`);
if (correct < 0.98 * points.length) throw new Error("training went wrong");
