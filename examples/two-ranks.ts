// Two ranks with half of a batch each average their gradients by an all-reduce in the graph. The reference interpreter
// runs both ranks in lockstep in f64 and shows that the result equals the step of a single rank with the whole batch.
import {
  allReduceMean,
  mean,
  multiply,
  referenceBackend,
  square,
  subtract,
  sum,
  type Tensor,
  trace,
  valueAndGrad,
  evaluate,
  NdArray,
} from "@skein/tensor-core";
import { interpretWorld } from "@skein/tensor-core/backend";

const loss = (w: Tensor, x: Tensor, y: Tensor): Tensor => mean(square(subtract(sum(multiply(x, w), { dims: [1] }), y)));

const distributed = (w: Tensor, x: Tensor, y: Tensor): Tensor => {
  const [, gradient] = valueAndGrad(loss)(w, x, y);
  return subtract(w, multiply(allReduceMean(gradient, "data"), 0.1));
};
const alone = (w: Tensor, x: Tensor, y: Tensor): Tensor => subtract(w, multiply(valueAndGrad(loss)(w, x, y)[1], 0.1));

const f32 = (shape: readonly number[]) => ({ dtype: "f32", shape }) as const;
const { graph } = trace(distributed, [f32([2]), f32([2, 2]), f32([2])], { mesh: { data: 2 } });

const value = (shape: readonly number[], data: readonly number[]) => ({
  spec: f32(shape),
  data: Float64Array.from(data),
});
const weight = [0.5, -0.5];
const ranks = interpretWorld(graph, [
  [value([2], weight), value([2, 2], [1, 2, 3, 4]), value([2], [1, 0])],
  [value([2], weight), value([2, 2], [-1, 0, 2, 5]), value([2], [2, -1])],
]);
const together = ranks.map(([updated]) => Array.from(updated!.data));

const whole = await evaluate(alone, referenceBackend())(
  NdArray.from(weight),
  NdArray.from([1, 2, 3, 4, -1, 0, 2, 5], [4, 2]),
  NdArray.from([1, 0, 2, -1]),
);
console.log("rank 0:", together[0], "rank 1:", together[1], "one rank, whole batch:", whole.toNumbers());
for (const updated of together) {
  updated.forEach((w, i) => {
    if (Math.abs(w - whole.toNumbers()[i]!) > 1e-6) throw new Error("two ranks and one rank disagree");
  });
}
