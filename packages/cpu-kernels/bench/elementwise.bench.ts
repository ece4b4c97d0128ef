// Measures an Adam update compared with copy bandwidth, and the exponentials per second of one core.
// Run: node bench/elementwise.bench.ts
import { adam, applyUpdates, type DeviceArray, exp, jit, type Tensor } from "@skein/tensor-core";
import { measure, printMeasurement } from "@skein/measuring";
import { normalArray } from "@skein/testing";
import { createCpuBackend } from "../src/index.ts";

const count = 10_000_000;
const backend = await createCpuBackend();
const host = normalArray([count], 3);

const [source, target] = [new Float32Array(host.data), new Float32Array(count)];
const copy = (): void => target.set(source);
copy();
if (target.at(-1) !== source.at(-1)) throw new Error("the copy is not one");
printMeasurement("copy of 10M elements", await measure(copy), { amount: 8 * count, unit: "B" });

const optimizer = adam({ learningRate: 0.01 });
type State = ReturnType<typeof optimizer.init>;
const step = jit(
  (params: Tensor, state: State, gradient: Tensor) => {
    const [updates, next] = optimizer.update(gradient, state, { params });
    return [applyUpdates(params, updates), next] as const;
  },
  backend,
  { donate: [0, 1] },
);
const gradient = backend.upload(host);
let params: DeviceArray = backend.upload(host);
let state = (await jit((w: Tensor) => optimizer.init(w), backend)(params)) as Parameters<typeof step>[1];
const update = async (): Promise<void> => {
  [params, state] = (await step(params, state, gradient)) as unknown as [DeviceArray, typeof state];
};

// With a constant gradient, both bias-corrected means equal the gradient. Therefore every step moves each weight by the
// learning rate, here towards zero.
const checkedSteps = 3;
for (let i = 0; i < checkedSteps; i++) await update();
const moved = (await backend.download(params)).data;
for (let i = 0; i < count; i++) {
  const w = source[i]!;
  if (Math.abs(w) < 1e-3) continue; // ε is not negligible for small values
  const expected = w - 0.01 * checkedSteps * Math.sign(w);
  if (!(Math.abs((moved[i] as number) - expected) <= 1e-5))
    throw new Error(`weight ${i} is ${moved[i]}, expected ${expected}`);
}
// Reads four arrays (weights, gradient, two means), writes three.
printMeasurement("Adam update of 10M elements", await measure(update), { amount: 28 * count, unit: "B" });

const exponential = jit((x: Tensor) => exp(x), backend);
for (const [size, where] of [
  [1 << 14, "in cache"],
  [count, "in memory"],
] as const) {
  const x = backend.upload(normalArray([size], 5));
  const values = (await backend.download(x)).data;
  const call = async (): Promise<void> => backend.free(await exponential(x));
  const first = await exponential(x);
  (await backend.download(first)).data.forEach((value, i) => {
    const expected = Math.exp(values[i] as number);
    if (!(Math.abs((value as number) - expected) <= 1e-6 * expected))
      throw new Error(`exp(${values[i]}) is ${value}, not ${expected}`);
  });
  backend.free(first);
  printMeasurement(`exp of ${size} elements ${where}`, await measure(call), { amount: size, unit: "exp" });
}
