import type { OwnOptimizer } from "@skein/step/node";
import {
  adam,
  adamw,
  add,
  chain,
  clipByGlobalNorm,
  full,
  type GradientTransformation,
  mapTree,
  matmul,
  mean,
  momentum,
  multiply,
  reshape,
  scaleByLearningRate,
  sign,
  sum,
  square,
  sqrt,
  type Tensor,
  where,
  greater,
  zipTrees,
} from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { requireElementwise, requireStateByParameter } from "./elementwise.ts";

const spec = (...shape: number[]) => ({ dtype: "f32", shape }) as const;

const shapes = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 3 });
const trees = fc.dictionary(
  fc.constantFrom("a", "b", "c"),
  shapes.map((shape) => spec(...shape)),
  { minKeys: 1 },
);

const plain = (update: (gradient: Tensor, param: Tensor) => Tensor): OwnOptimizer => ({
  init: () => ({}),
  update: (gradients, state, { params }) => [zipTrees(update, gradients, params) as typeof gradients, state],
});

const byElement: Readonly<Record<string, GradientTransformation<never>>> = {
  adam: adam({ learningRate: 0.1 }) as never,
  adamw: adamw({ learningRate: 0.1, weightDecay: 0.1, mask: (_, { shape }) => shape.length > 1 }) as never,
  momentum: momentum({ learningRate: 0.1 }) as never,
  "by sign": chain(
    plain((gradient) => sign(gradient)),
    scaleByLearningRate(0.1),
  ) as never,
  "flat and back": plain((gradient) => reshape(multiply(reshape(gradient, [-1]), 2), gradient.shape)) as never,
};

const norm = (gradient: Tensor): Tensor => sqrt(sum(square(gradient)));

/** Optimizers in which the update of an entry depends on other entries, for a matrix [4, 3] and a vector [5]. */
const byMore: Readonly<Record<string, OwnOptimizer>> = {
  "a norm": plain((gradient) => multiply(gradient, norm(gradient))),
  "a norm above a bound": plain((gradient) => where(greater(norm(gradient), 100), multiply(gradient, 0.5), gradient)),
  "the norm of all": chain(clipByGlobalNorm(1), scaleByLearningRate(0.1)) as OwnOptimizer,
  "a product of matrices": plain((gradient) =>
    gradient.rank === 2 ? matmul(matmul(gradient, gradient, { transposeB: true }), gradient) : gradient,
  ),
  "a mean of parameters": plain((gradient, param) => add(gradient, mean(param))),
  "a norm that it keeps": {
    init: () => full([], 1),
    update: (gradients, scale, _) => [
      mapTree(gradients, (gradient: Tensor) => multiply(gradient, scale as Tensor)) as typeof gradients,
      norm((gradients as { readonly b: Tensor }).b),
    ],
  },
  "a dimension's size": plain((gradient) => multiply(gradient, gradient.shape[0]!)),
};

describe("elementwise updates", () => {
  test.each(Object.entries(byElement))("are accepted, whatever the parameters: %s", (_, rule) =>
    fc.assert(
      fc.asyncProperty(trees, (params) => requireElementwise(rule as unknown as OwnOptimizer, params, "optimizer")),
      { numRuns: 10 },
    ),
  );

  test.each(Object.entries(byMore))("and others are detected: %s", async (_, rule) => {
    await expect(requireElementwise(rule, { a: spec(4, 3), b: spec(5) }, "optimizer")).rejects.toThrow(
      /^optimizer declares elementwise: true, but (in a trial the update of entry \d+ of [ab] was|fails if ranks have)/,
    );
  });
});

test("state without the structure of the parameters is refused", () => {
  const params = { layers: { first: spec(4, 3) }, bias: spec(5) };
  const on = { zero: 0, mesh: {}, axisOf: () => "data" } as const;
  const require = (optimizer: unknown): void => requireStateByParameter({ optimizer, params }, on, "mine");
  for (const right of [{ count: spec() }, { mean: params }, [params, { deep: params }], {}]) require(right);
  expect(() => require({ mean: { bias: spec(4) } })).toThrow(/^mine keeps mean\.bias f32\[4\], which is not in a tree/);
  expect(() => require([spec(5)])).toThrow(
    /^mine keeps 0 f32\[5\], which is not in a tree with the structure of the parameters/,
  );
  const halves = { zero: 1, mesh: { data: 2 }, axisOf: () => "data" } as const;
  requireStateByParameter({ optimizer: { mean: { bias: spec(3) } }, params }, halves, "mine");
  expect(() => requireStateByParameter({ optimizer: { mean: params }, params }, halves, "mine")).toThrow(
    /mean\.bias f32\[5\]/,
  );
});
