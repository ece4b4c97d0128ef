// Custom operators and derivatives, without changes to Skein. `mish` is composed of existing operators, so it runs and
// is differentiated on every backend; a kernel, where available, computes it in one pass over memory.
// `roundStraightThrough` rounds, with the gradient of the identity.
import { createCpuBackend, javascriptKernel } from "@skein/cpu-kernels";
import {
  type Backend,
  customGradient,
  defineOperator,
  evaluate,
  multiply,
  NdArray,
  printGraph,
  referenceBackend,
  round,
  softplus,
  square,
  sum,
  tanh,
  type Tensor,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";

const mishOperator = defineOperator({
  name: "example/mish", // owner/name, so that the name never collides with an operator of Skein
  composition: ([x]) => [multiply(x!, tanh(softplus(x!)))],
});
const mish = (x: Tensor): Tensor => mishOperator([x])[0];

const mishKernel = javascriptKernel({
  op: mishOperator.operator.name,
  run: ([x], [y]) => {
    for (let i = 0; i < x!.length; i++) y![i] = x![i]! * Math.tanh(Math.log1p(Math.exp(x![i]!)));
  },
});

const roundStraightThrough = customGradient(
  (x: Tensor) => round(x),
  ({ cotangents }) => [cotangents],
);

const loss = (x: Tensor): Tensor => sum(square(roundStraightThrough(mish(x))));
const step = (x: Tensor): readonly Tensor[] => [mish(x), ...valueAndGrad(loss)(x)];

const x = NdArray.from([-1, 0.3, 2]);
console.log(printGraph(trace(mish, [x]).graph, { cost: true }));

const backends: readonly (readonly [string, Backend])[] = [
  ["f64 reference", referenceBackend()],
  ["CPU, composed", await createCpuBackend()],
  ["CPU, own kernel", await createCpuBackend({ kernels: [mishKernel] })],
];
const results: number[][] = [];
for (const [name, backend] of backends) {
  const [value, total, gradient] = await evaluate(step, backend)(x);
  console.log(name, "mish", value!.toNumbers(), "loss", total!.item(), "gradient", gradient!.toNumbers());
  results.push([value!, gradient!].flatMap((array) => Array.from(array.toNumbers())));
}
for (const result of results)
  result.forEach((value, i) => {
    if (Math.abs(value - results[0]![i]!) > 1e-5) throw new Error("a backend disagrees with the reference");
  });
