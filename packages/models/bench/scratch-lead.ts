import { createCpuBackend } from "@skein/cpu-kernels";
import { applyUpdates, valueAndGradWithAux, jit, NdArray, type Tensor, sgd, SpanRecorder, randomKey } from "@skein/tensor-core";
import { cnn, mlp } from "@skein/models";
const which = process.argv[2] ?? "cnn";
const tracer = process.argv[3] === "trace" ? new SpanRecorder() : undefined;
const backend = await createCpuBackend();
const model: any = which === "cnn" ? cnn() : mlp({ sizes: [784, 512, 512, 10] } as never);
const opt = sgd({ learningRate: 0.01 } as never);
const init = jit((key: Tensor) => { const s = model.init(key); return { params: s.params, state: s.state, optim: opt.init(s.params) }; }, backend);
const step = jit((s: any, inputs: Tensor, labels: Tensor) => {
  const [loss, state, g] = (valueAndGradWithAux as any)(model.loss)(s.params, s.state, { inputs, labels }, { train: true });
  const [u, optim] = opt.update(g as never, s.optim as never, { params: s.params } as never);
  return { s: { params: applyUpdates(s.params, u as never), state, optim }, loss };
}, backend, { donate: [0], ...(tracer && { tracer }) } as never);
let s: any = await init(randomKey(1));
const x = backend.upload(NdArray.from(Float32Array.from({ length: 64 * 784 }, () => Math.random()), which === "cnn" ? [64, 28, 28, 1] : [64, 784]));
const y = backend.upload(NdArray.from(Int32Array.from({ length: 64 }, (_, i) => i % 10), [64], "i32"));
const ts: number[] = [];
for (let i = 0; i < 40; i++) {
  if (i === 39 && tracer) tracer.spans.length = 0;
  const t = performance.now();
  const r: any = await step(s, x, y);
  s = r.s;
  ts.push(performance.now() - t);
  if (i % 10 === 0) console.log(i, (await backend.download(r.loss)).item());
  backend.free(r.loss);
}
ts.sort((a, b) => a - b);
console.log(which, "median", ts[20]!.toFixed(2), "min", ts[0]!.toFixed(2));
if (tracer) for (const sp of [...tracer.spans].sort((a, b) => b.durationSeconds - a.durationSeconds).slice(0, 18)) console.log((sp.durationSeconds * 1e3).toFixed(3), sp.name);
