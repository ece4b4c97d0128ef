import { describe, expect, it } from "vitest";
import { valueAndGrad } from "../autodiff/vjp.ts";
import { add, multiply, square, subtract } from "../functions/elementwise.ts";
import { reshape, slice } from "../functions/movement.ts";
import { sum } from "../functions/reduce.ts";
import type { Tensor } from "../graph/tensor.ts";
import { evaluate, jit } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { formatSpec, type TensorSpec } from "../shape.ts";
import { flattenTree, leafPaths } from "../tree.ts";
import { clipByGlobalNorm, globalNorm } from "./clip-by-global-norm.ts";
import { adam, adamw, momentum, nesterov, sgd } from "./optimizers.ts";
import { scale, scaleByLearningRate } from "./scale.ts";
import { warmUp } from "./schedule.ts";
import { applyUpdates, chain, type GradientTransformation } from "./transformation.ts";
import { addDecayedWeights, decayMatrices } from "./weight-decay.ts";

type Vector = number[];
/**
 * Independent implementation of an update rule: returns the new parameters, given the gradient and the parameters of
 * step t = 1, 2, ….
 */
type PlainRule = (gradient: Vector, params: Vector, t: number) => Vector;

interface Row {
  readonly name: string;
  readonly optimizer: GradientTransformation<unknown>;
  readonly plain: () => PlainRule;
  /**
   * Number of steps that is enough to minimize the parabola. The field `valleySteps` is the number of steps that is
   * enough for the Rosenbrock function, with optimizer `valley`.
   */
  readonly parabolaSteps: number;
  readonly valley: GradientTransformation<unknown>;
  readonly valleySteps: number;
}

const plainMomentum = (options: { lr: number; mu: number; wd?: number; nesterov?: boolean }) => (): PlainRule => {
  let buffer: Vector | undefined; // as in PyTorch, the buffer is initialized with the first gradient
  return (gradient, params) => {
    const g = gradient.map((value, i) => value + (options.wd ?? 0) * params[i]!);
    buffer = buffer === undefined ? [...g] : buffer.map((value, i) => options.mu * value + g[i]!);
    return params.map(
      (value, i) => value - options.lr * (options.nesterov ? g[i]! + options.mu * buffer![i]! : buffer![i]!),
    );
  };
};

const plainAdam =
  (options: { lr: (t: number) => number; b1?: number; b2?: number; eps?: number; wd?: number }) => (): PlainRule => {
    const { b1 = 0.9, b2 = 0.999, eps = 1e-8, wd = 0 } = options;
    let m: Vector = [];
    let v: Vector = [];
    return (gradient, params, t) => {
      const lr = options.lr(t);
      m = gradient.map((g, i) => b1 * (m[i] ?? 0) + (1 - b1) * g);
      v = gradient.map((g, i) => b2 * (v[i] ?? 0) + (1 - b2) * g * g);
      return params.map(
        (p, i) =>
          p * (1 - lr * wd) - (lr / (1 - b1 ** t)) * (m[i]! / (Math.sqrt(v[i]!) / Math.sqrt(1 - b2 ** t) + eps)),
      );
    };
  };

// Each optimizer of this package must have a row.
const rows: readonly Row[] = [
  {
    name: "sgd",
    optimizer: sgd({ learningRate: 0.1, weightDecay: 0.01 }),
    plain: plainMomentum({ lr: 0.1, mu: 0, wd: 0.01 }),
    parabolaSteps: 150,
    valley: sgd({ learningRate: 2e-3 }),
    valleySteps: 4000,
  },
  {
    name: "momentum",
    optimizer: momentum({ learningRate: 0.05, decay: 0.8, weightDecay: 0.01 }),
    plain: plainMomentum({ lr: 0.05, mu: 0.8, wd: 0.01 }),
    parabolaSteps: 100,
    valley: momentum({ learningRate: 1e-3 }),
    valleySteps: 1500,
  },
  {
    name: "nesterov",
    optimizer: nesterov({ learningRate: 0.05, decay: 0.8, weightDecay: 0.01 }),
    plain: plainMomentum({ lr: 0.05, mu: 0.8, wd: 0.01, nesterov: true }),
    parabolaSteps: 100,
    valley: nesterov({ learningRate: 1e-3 }),
    valleySteps: 1500,
  },
  {
    name: "adam with warm-up",
    optimizer: adam({ learningRate: warmUp(3, 0.1), beta1: 0.8 }),
    plain: plainAdam({ lr: (t) => (0.1 * Math.min(t, 4)) / 4, b1: 0.8 }),
    parabolaSteps: 300,
    valley: adam({ learningRate: 0.05 }),
    valleySteps: 1500,
  },
  {
    name: "adamw",
    optimizer: adamw({ learningRate: 0.1, weightDecay: 0.05, beta2: 0.99, epsilon: 1e-3 }),
    plain: plainAdam({ lr: () => 0.1, wd: 0.05, b2: 0.99, eps: 1e-3 }),
    parabolaSteps: 300,
    valley: adamw({ learningRate: 0.05, weightDecay: 0 }),
    valleySteps: 1500,
  },
];

const specsOf = (tree: unknown): string[] => flattenTree<TensorSpec>(tree).leaves.map(formatSpec);

/** Minimizes `loss` from `start`. Also counts traces, and checks that the specs of the state do not change. */
const descend = async <P>(
  optimizer: GradientTransformation<unknown>,
  loss: (params: P) => Tensor,
  start: P,
  steps: number,
): Promise<{ params: number[]; traces: number; path: number[][] }> => {
  let traces = 0;
  const step = jit((params: P, state: unknown) => {
    traces++;
    const [, gradients] = valueAndGrad(loss)(params);
    const [updates, next] = optimizer.update(gradients, state, { params });
    return [applyUpdates(params, updates), next];
  }, referenceBackend());
  const state: unknown = await jit((params: P) => optimizer.init(params), referenceBackend())(start as never);
  let current: [unknown, unknown] = [start, state];
  const numbers = (): number[] =>
    flattenTree<{ value?: { data: Float64Array }; data?: ArrayLike<number> }>(current[0]).leaves.flatMap((leaf) =>
      Array.from(leaf.value?.data ?? leaf.data!),
    );
  const path: number[][] = [];
  for (let i = 0; i < steps; i++) {
    current = (await step(...(current as never as [never, never]))) as [unknown, unknown];
    path.push(numbers());
  }
  expect([specsOf(current[1]), leafPaths(current[1])]).toEqual([specsOf(state), leafPaths(state)]);
  expect([specsOf(current[0]), leafPaths(current[0])]).toEqual([specsOf(start), leafPaths(start)]);
  return { params: numbers(), traces, path };
};

interface Params {
  readonly a: Tensor;
  readonly b: readonly Tensor[];
}

const start = { a: NdArray.from([1, -2, 3], [3, 1]), b: [NdArray.from([0.5], [])] } as unknown as Params;
const curvature = [1, 4, 2, 3];
const parabola = (params: Params): Tensor => {
  const [x, y, z] = [0, 1, 2].map((i) => reshape(slice(params.a, [i], [i + 1]), []));
  return [x!, y!, z!, params.b[0]!]
    .map((value, i) => multiply(square(value), curvature[i]! / 2))
    .reduce((total, term) => add(total, term));
};

const rosenbrock = (params: Tensor): Tensor => {
  const [x, y] = [slice(params, [0], [1]), slice(params, [1], [2])];
  return sum(add(square(subtract(1, x)), multiply(square(subtract(y, square(x))), 100)));
};

describe.each(rows)("$name", ({ optimizer, plain, parabolaSteps, valley, valleySteps }) => {
  it("equals the formula in plain numbers", async () => {
    const { path } = await descend(optimizer, parabola, start, 6);
    const rule = plain();
    let params = [1, -2, 3, 0.5];
    path.forEach((actual, i) => {
      params = rule(
        params.map((value, j) => curvature[j]! * value),
        params,
        i + 1,
      );
      actual.forEach((value, j) => expect(Math.abs(value - params[j]!)).toBeLessThan(1e-12));
    });
  });

  it("gives the same bits twice, and is traced once", async () => {
    const first = await descend(optimizer, parabola, start, 5);
    const second = await descend(optimizer, parabola, start, 5);
    expect(second.params).toEqual(first.params);
    expect(first.traces).toBe(1);
  });

  it("finds the bottom of a parabola", async () => {
    const { params } = await descend(optimizer, parabola, start, parabolaSteps);
    expect(Math.hypot(...params)).toBeLessThan(0.02);
  });

  it("follows Rosenbrock's valley to (1, 1)", async () => {
    const { params } = await descend(valley, rosenbrock, NdArray.from([-1, 1]) as unknown as Tensor, valleySteps);
    expect(Math.hypot(params[0]! - 1, params[1]! - 1)).toBeLessThan(0.1);
  });
});

describe("parts", () => {
  const tree = { w: NdArray.from([3, 0], [1, 2]), b: NdArray.from([4]) };

  it("clipByGlobalNorm keeps updates within the norm and scales down larger ones", async () => {
    const clip = (max: number): Promise<{ w: NdArray; b: NdArray; norm: NdArray }> =>
      evaluate((updates: { w: Tensor; b: Tensor }) => {
        const [clipped] = clipByGlobalNorm(max).update(updates, {}, { params: updates });
        return { ...clipped, norm: globalNorm(clipped) };
      }, referenceBackend())(tree);
    expect((await clip(10)).w.toNumbers()).toEqual([3, 0]);
    const short = await clip(1);
    expect(short.norm.item()).toBeCloseTo(1, 6);
    expect(short.b.item()).toBeCloseTo(0.8, 6);
    expect(() => clipByGlobalNorm(0)).toThrow(/positive number/);
  });

  it("clipByGlobalNorm keeps zeros and propagates NaN", async () => {
    const clip = evaluate((x: Tensor) => clipByGlobalNorm(1).update(x, {}, { params: x })[0], referenceBackend());
    expect((await clip(NdArray.from([0, 0]))).toNumbers()).toEqual([0, 0]);
    expect((await clip(NdArray.from([1, NaN]))).toNumbers()).toEqual([NaN, NaN]);
  });

  it("addDecayedWeights decays the parameters that its mask selects", async () => {
    const decay = (mask: typeof decayMatrices): Promise<{ w: NdArray; b: NdArray }> =>
      evaluate(
        (updates: { w: Tensor; b: Tensor }) => addDecayedWeights(0.5, mask).update(updates, {}, { params: updates })[0],
        referenceBackend(),
      )(tree);
    const matrices = await decay(decayMatrices);
    expect([matrices.w.toNumbers(), matrices.b.toNumbers()]).toEqual([[4.5, 0], [4]]);
    const byPath = await decay((path) => path === "b");
    expect([byPath.w.toNumbers(), byPath.b.toNumbers()]).toEqual([[3, 0], [6]]);
    const byHalf = await decay((path) => (path === "b" ? 0.5 : true));
    expect([byHalf.w.toNumbers(), byHalf.b.toNumbers()]).toEqual([[4.5, 0], [5]]);
    for (const wrong of [undefined, -1, Number.NaN, "yes"])
      await expect(decay(() => wrong as never)).rejects.toThrow("return true, false, or a factor of the decay from 0");
  });

  it("chain applies its parts in order", async () => {
    const chained = chain(addDecayedWeights(1), scale(10), clipByGlobalNorm(1000));
    const result = evaluate((u: Tensor) => chained.update(u, chained.init(u), { params: u })[0], referenceBackend());
    expect((await result(NdArray.from([1]))).toNumbers()).toEqual([20]);
  });

  it("applyUpdates names both trees when they differ", async () => {
    const wrong = evaluate((u: { w: Tensor; b: Tensor }) => applyUpdates<unknown>(u, { w: u.w }), referenceBackend());
    await expect(wrong(tree)).rejects.toThrow(/leaves \[w\], the first has \[b, w\]/);
  });
});

describe("rejects invalid optimizer settings at creation", () => {
  it.each<[message: string, make: () => unknown]>([
    ["learningRate is the number NaN, but it must be a finite number from 0", () => sgd({ learningRate: NaN })],
    ["learningRate is the number -0.1", () => adam({ learningRate: -0.1 })],
    ["learningRate is missing, but it must be a number or a schedule", () => sgd({} as never)],
    ['learningRate is "0.1"', () => scaleByLearningRate("0.1" as never)],
    ["write adam({ learningRate: 0.1 })", () => adam(0.1 as never)],
    ['sgd: unknown option "lr"; its options are learningRate, weightDecay, mask', () => sgd({ lr: 0.1 } as never)],
    [
      "decay is the number 2, but it must be a number from 0 to below 1; use for example 0.9",
      () => momentum({ learningRate: 0.1, decay: 2 }),
    ],
    ["decay is the number 1", () => nesterov({ learningRate: 0.1, decay: 1 })],
    ["beta1 is the number 1.5", () => adam({ learningRate: 0.1, beta1: 1.5 })],
    ["beta2 is the number -1", () => adamw({ learningRate: 0.1, beta2: -1 })],
    ["epsilon is the number NaN", () => adam({ learningRate: 0.1, epsilon: NaN })],
    ["weight decay is the number Infinity", () => adamw({ learningRate: 0.1, weightDecay: Infinity })],
    ["its mask is the list [true]", () => sgd({ learningRate: 0.1, weightDecay: 0.1, mask: [true] as never })],
    ["its factor is the number NaN", () => scale(NaN)],
    ["part 1 is the list", () => chain([scale(1), scale(2)] as never)],
  ])("%s", (message, make) => expect(make).toThrow(message));

  it("rejects a state or context that init() did not create", async () => {
    const optimizer = adam({ learningRate: 0.1 });
    const update = (call: (x: Tensor, state: ReturnType<typeof optimizer.init>) => unknown) =>
      evaluate((x: Tensor) => call(x, optimizer.init(x)) as Tensor, referenceBackend())(NdArray.from([1, 2]));
    await expect(update((x, state) => optimizer.update(state as never, x as never, { params: x }))).rejects.toThrow(
      /its state is Tensor f32\[2\], but it must be the state that init\(\)/,
    );
    await expect(update((x, state) => optimizer.update(x, state, undefined as never))).rejects.toThrow(
      /call update\(gradients, state, \{ params \}\)/,
    );
  });
});
