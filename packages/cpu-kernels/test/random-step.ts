import fc from "fast-check";
import {
  add,
  allReduce,
  checkpoint,
  dropout,
  foldIn,
  gelu,
  layerNorm,
  matmul,
  maximum,
  mean,
  multiply,
  relu,
  sigmoid,
  softmax,
  square,
  subtract,
  tanh,
  type Tensor,
  transpose,
} from "@skein/tensor-core";

/**
 * Operators of a step, and ranges of these operators that are checkpoints. Plain data that determines a function, so
 * that fast-check can shrink it.
 */
export interface StepRecipe {
  readonly steps: readonly { readonly op: number; readonly a: number; readonly b: number }[];
  /**
   * Begin and length of each checkpointed range, clipped to the list of operators. A range that begins inside an
   * earlier range also ends inside the earlier range.
   */
  readonly regions: readonly { readonly begin: number; readonly length: number }[];
}

export const stepRecipe: fc.Arbitrary<StepRecipe> = fc.record({
  steps: fc.array(fc.record({ op: fc.nat(1000), a: fc.nat(1000), b: fc.nat(1000) }), {
    minLength: 1,
    maxLength: 24,
    size: "max",
  }),
  regions: fc.array(fc.record({ begin: fc.nat(23), length: fc.integer({ min: 1, max: 24 }) }), {
    maxLength: 6,
    size: "max",
  }),
});

export interface StepParams {
  readonly weights: readonly Tensor[];
  readonly gain: Tensor;
  readonly shift: Tensor;
}

type Row = (x: Tensor, y: Tensor, params: StepParams, key: Tensor, k: number) => Tensor;

const rows: readonly Row[] = [
  add,
  (x, y) => multiply(x, y),
  subtract,
  (x) => tanh(x),
  (x) => relu(x),
  (x) => gelu(x),
  (x, y) => multiply(sigmoid(x), y),
  (x, y) => maximum(x, y),
  (x) => softmax(x),
  (x, _, { weights }, __, k) => matmul(x, weights[k % weights.length]!),
  (x, y) => matmul(x, y, { transposeB: true }),
  (x, _, { gain, shift }) => layerNorm(x, gain, shift),
  (x, _, __, key, k) => dropout(x, 0.25, foldIn(key, k)),
  (x) => transpose(x),
  (x) => allReduce(multiply(x, 0.5), "data"),
];

export const stepSize = 8;

/**
 * Builds the loss of a recipe over matrices of `stepSize` rows and columns.
 *
 * @param checkpointed Whether to use the checkpoints of the recipe.
 */
export const lossOf =
  ({ steps, regions }: StepRecipe, checkpointed: boolean) =>
  (params: StepParams, x: Tensor, key: Tensor): Tensor => {
    const run = (pool: readonly Tensor[], begin: number, end: number, inside: number): readonly Tensor[] => {
      let current = pool;
      for (let i = begin; i < end; ) {
        const next = regions.findIndex((region, number) => number >= inside && region.begin === i);
        if (checkpointed && next >= 0) {
          const limit = Math.min(end, i + regions[next]!.length);
          const [before, start] = [current, i];
          current = checkpoint((values: readonly Tensor[]) => run(values, start, limit, next + 1))(before);
          i = limit;
          continue;
        }
        const { op, a, b } = steps[i]!;
        const pick = (choice: number): Tensor => current[current.length - 1 - (choice % Math.min(current.length, 4))]!;
        current = [...current, rows[op % rows.length]!(pick(a), pick(b), params, key, i)];
        i++;
      }
      return current;
    };
    return mean(square(run([x], 0, steps.length, 0).at(-1)!));
  };
