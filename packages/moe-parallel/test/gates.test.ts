import { cast, NdArray, type Tensor, valueAndGrad, sum, multiply } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  balancingBiasGate,
  cosineGate,
  expertChoiceGate,
  type Gate,
  type GateOutput,
  noisyTopKGate,
  sigmoidGate,
  sinkhornGate,
  softGate,
  switchGate,
} from "../src/index.ts";
import { gateRows } from "./gate-rows.ts";
import { keyOf, tokensOf, width } from "./tokens.ts";
import { runRanks } from "./world.ts";

const numExperts = 4;
const sizes = { width, numExperts };

type Arrays = Readonly<Record<string, NdArray>>;

interface Decided {
  readonly routing: Arrays & { readonly kind?: never };
  readonly state: Arrays;
  readonly loss: NdArray;
  readonly figures: Arrays;
}

interface ChooseOptions {
  readonly train?: boolean;
  readonly params?: Arrays;
  readonly state?: Arrays;
  readonly key?: NdArray;
}

const begin = (gate: Gate): { readonly params: Arrays; readonly state: Arrays } =>
  runRanks((key: Tensor) => gate.init(key), [[keyOf(9)]])[0] as never;

/** Flattens the output of a gate, because a trace returns only tensors. */
const tensorsOf = ({ routing, ...rest }: GateOutput<unknown>) => {
  const tensors =
    routing.kind === "choices"
      ? { choices_TK: routing.choices_TK, weights_TK: routing.weights_TK }
      : { dispatch_TEC: routing.dispatch_TEC, combine_TEC: routing.combine_TEC };
  return { routing: tensors, ...rest };
};

const choose = (gate: Gate, x: NdArray, options: ChooseOptions = {}): Decided => {
  const first = begin(gate);
  const { train = true, params = first.params, state = first.state, key = keyOf(5) } = options;
  const fn = (own: unknown, held: unknown, x_TD: Tensor, key_2: Tensor) =>
    tensorsOf(gate.choose(own, held, x_TD, { train, key: key_2, tokenAxes: [] }));
  return runRanks(fn as never, [[params, state, x, key]] as never)[0] as never;
};

const rowsOf = (array: NdArray): number[][] => {
  const numbers = array.toNumbers();
  const each = numbers.length / array.shape[0]!;
  return Array.from({ length: array.shape[0]! }, (_, row) => numbers.slice(row * each, (row + 1) * each));
};

/** Router weights of moderate size, so that sigmoids and softmaxes are far from uniform. */
const weights = NdArray.from(
  [0.5, -1, 2, 0.25, -0.75, 1.5, 0.125, -2, 1, 0.375, -0.5, 0.0625],
  [width, numExperts],
  "f32",
);
const router = { weight_DE: weights };

const dot = (a: readonly number[], b: readonly number[]): number =>
  a.reduce((total, value, i) => total + value * b[i]!, 0);
const logitsOf = (x: NdArray): number[][] => {
  const columns = rowsOf(weights);
  return rowsOf(x).map((row) =>
    Array.from({ length: numExperts }, (_, e) =>
      Math.fround(
        dot(
          row,
          columns.map((line) => line[e]!),
        ),
      ),
    ),
  );
};
const softmaxOf = (logits: readonly number[]): number[] => {
  const most = Math.max(...logits);
  const each = logits.map((value) => Math.exp(value - most));
  const total = each.reduce((a, b) => a + b, 0);
  return each.map((value) => value / total);
};
const sigmoidOf = (x: number): number => 1 / (1 + Math.exp(-x));

/** Returns the indices of the greatest scores in descending order. Among equal scores, the lower index comes first. */
const best = (scores: readonly number[], count: number): number[] =>
  scores
    .map((_, i) => i)
    .toSorted((a, b) => scores[b]! - scores[a]! || a - b)
    .slice(0, count);

const share = (values: readonly number[]): number[] => {
  const total = values.reduce((a, b) => a + b, 0);
  return values.map((value) => value / total);
};

interface Oracle {
  readonly name: string;
  readonly gate: Gate<never, never>;
  readonly decide: (logits: readonly number[]) => { readonly choices: number[]; readonly weights: number[] };
}

const topWith = (
  numChoices: number,
  score: (logits: readonly number[]) => readonly number[],
  after: (kept: number[]) => number[] = (kept) => kept,
): Oracle["decide"] => {
  return (logits) => {
    const choices = best(logits, numChoices);
    return { choices, weights: after(choices.map((e) => score(logits)[e]!)) };
  };
};
const sigmoids = (logits: readonly number[]): number[] => logits.map(sigmoidOf);
const asTheyAre = (logits: readonly number[]): readonly number[] => logits;

const oracles: readonly Oracle[] = [
  { name: "switchGate", gate: switchGate(sizes) as never, decide: topWith(1, softmaxOf) },
  {
    name: "switchGate with two choices",
    gate: switchGate({ ...sizes, numChoices: 2 }) as never,
    decide: topWith(2, softmaxOf),
  },
  {
    name: "noisyTopKGate",
    gate: noisyTopKGate({ ...sizes, numChoices: 2, noise: "none" }) as never,
    decide: topWith(2, asTheyAre, softmaxOf),
  },
  { name: "sigmoidGate", gate: sigmoidGate({ ...sizes, numChoices: 3 }) as never, decide: topWith(3, sigmoids) },
  {
    name: "balancingBiasGate",
    gate: balancingBiasGate({ ...sizes, numChoices: 2, weightSum: 2.5 }) as never,
    decide: topWith(2, sigmoids, (kept) => share(kept).map((value) => 2.5 * value)),
  },
  {
    name: "sinkhornGate, not training",
    gate: sinkhornGate({ ...sizes, numChoices: 2 }) as never,
    decide: topWith(2, softmaxOf),
  },
  {
    name: "sinkhornGate with one choice, not training",
    gate: sinkhornGate({ ...sizes, numChoices: 1 }) as never,
    decide: topWith(1, sigmoids),
  },
];

test.each(oracles)("$name chooses and weights by its formula, with ties to the lower expert", ({ gate, decide }) => {
  fc.assert(
    fc.property(tokensOf(5), (x) => {
      const { routing } = choose(gate as never, x, { train: false, params: router });
      const expected = logitsOf(x).map(decide);
      expect(routing["choices_TK"]!.toNumbers()).toEqual(expected.flatMap(({ choices }) => choices));
      routing["weights_TK"]!.toNumbers().forEach((weight, i) =>
        expect(weight).toBeCloseTo(expected.flatMap((own) => own.weights)[i]!, 5),
      );
    }),
    { numRuns: examples(20, 300) },
  );
});

test("cosineGate: cosines over a temperature of at least 0.01, independent of the lengths of tokens and experts", () => {
  const gate = cosineGate({ ...sizes, numChoices: 2, projection: 2, temperature: 0.25 }) as Gate;
  const projection = [1, 0, 0, 1, 1, -1];
  const experts = [1, 0, 0, 5, -2, 0, 3, 3];
  const params = (logScale: number): Arrays => ({
    projection_DJ: NdArray.from(projection, [3, 2], "f32"),
    experts_EJ: NdArray.from(experts, [4, 2], "f32"),
    logScale: NdArray.from([logScale], [], "f32"),
  });
  expect(begin(gate).params["logScale"]!.item()).toBeCloseTo(Math.log(4), 6);
  const x = NdArray.from([4, 3, 0, 8, 6, 0, 0, 0, 0], [3, 3], "f32");
  const cosines = [0.8, 0.6, -0.8, (0.8 + 0.6) / Math.SQRT2];
  for (const [logScale, scale] of [
    [Math.log(2), 2],
    [Math.log(1000), 100],
  ] as const) {
    const { routing } = choose(gate, x, { params: params(logScale) });
    const probabilities = softmaxOf(cosines.map((value) => scale * value));
    expect(routing["choices_TK"]!.toNumbers()).toEqual([3, 0, 3, 0, 0, 1]);
    const expected = [probabilities[3]!, probabilities[0]!];
    [...expected, ...expected, 0.25, 0.25].forEach((weight, i) =>
      expect(routing["weights_TK"]!.toNumbers()[i]).toBeCloseTo(weight, 4),
    );
  }
});

test("cosineGate limits the scale to 100", () => {
  const gate = cosineGate({ width, numExperts: 2, numChoices: 2, projection: 2 }) as Gate;
  const weight = (logScale: number): number => {
    const params = {
      projection_DJ: NdArray.from([1, 0, 0, 1, 0, 0], [3, 2], "f32"),
      experts_EJ: NdArray.from([1, 0, 1, 0.1], [2, 2], "f32"),
      logScale: NdArray.from([logScale], [], "f32"),
    };
    return choose(gate, NdArray.from([1, 0, 0], [1, 3], "f32"), { params }).routing["weights_TK"]!.toNumbers()[1]!;
  };
  const below = 1 / Math.sqrt(1.01) - 1; // of the second cosine
  for (const [logScale, scale] of [
    [Math.log(50), 50],
    [Math.log(100), 100],
    [Math.log(1000), 100],
  ] as const)
    expect(weight(logScale)).toBeCloseTo(softmaxOf([0, scale * below])[1]!, 4);
});

test("switchGate with jitter scales each number of a token within the jitter, in training", () => {
  const x = NdArray.from([1, 2, -1, 0.5, 1, 2], [2, 3], "f32");
  const weightsWith = (train: boolean): number[] =>
    choose(switchGate({ ...sizes, jitter: 0.05 }) as Gate, x, { params: router, train }).routing[
      "weights_TK"
    ]!.toNumbers();
  const [still, shaken] = [weightsWith(false), weightsWith(true)];
  expect(shaken).not.toEqual(still);
  // A logit changes by at most 0.05 · Σ |x| |w|, the logarithm of a probability by at most twice that.
  const most = 2 * 0.05 * 4 * 2;
  still.forEach((weight, i) => expect(Math.abs(Math.log(shaken[i]! / weight))).toBeLessThan(most / 2));
});

test("expertChoiceGate: each expert gets exactly its most probable tokens, earlier tokens among equals", () => {
  const setting = fc.record({
    meanChoices: fc.constantFrom(0.5, 1, 2, 4),
    x: fc.integer({ min: 1, max: 8 }).chain(tokensOf),
  });
  fc.assert(
    fc.property(setting, ({ meanChoices, x }) => {
      const numTokens = x.shape[0]!;
      const decided = (own: number): Decided =>
        choose(expertChoiceGate({ ...sizes, meanChoices: own }) as Gate, x, { params: router });
      const { routing } = decided(meanChoices);
      // If experts take all tokens, the weights are all probabilities.
      const probabilities = rowsOf(decided(numExperts).routing["weights_TK"]!);
      probabilities.forEach((own, token) =>
        softmaxOf(logitsOf(x)[token]!).forEach((value, e) => expect(own[e]).toBeCloseTo(value, 5)),
      );
      const most = Math.min(numTokens, Math.ceil((meanChoices * numTokens) / numExperts));
      const takers = Array.from({ length: numExperts }, (_, e) =>
        best(
          probabilities.map((own) => own[e]!),
          most,
        ),
      );
      rowsOf(routing["choices_TK"]!).forEach((own, token) =>
        expect(own).toEqual(takers.map((tokens, e) => (tokens.includes(token) ? e : -1))),
      );
      rowsOf(routing["weights_TK"]!).forEach((own, token) =>
        expect(own).toEqual(takers.map((tokens, e) => (tokens.includes(token) ? probabilities[token]![e]! : 0))),
      );
    }),
    { numRuns: examples(30, 300) },
  );
});

test("softGate: slots are means of tokens, and tokens are means of slots", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }).chain(tokensOf), (x) => {
      const { routing } = choose(softGate({ ...sizes, slots: 2 }) as Gate, x);
      const [dispatch, combine] = [rowsOf(routing["dispatch_TEC"]!), rowsOf(routing["combine_TEC"]!)];
      for (let slot = 0; slot < 8; slot++)
        expect(dispatch.reduce((total, own) => total + own[slot]!, 0)).toBeCloseTo(1, 5);
      for (const own of combine) expect(own.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 5);
    }),
    { numRuns: examples(10, 100) },
  );
  // With one token, each slot is that token; with equal cosines, all weights are equal.
  const zero = choose(softGate({ ...sizes, slots: 2 }) as Gate, NdArray.from([0, 0, 0, 0, 0, 0], [2, 3], "f32"));
  expect(zero.routing["dispatch_TEC"]!.toNumbers()).toEqual(new Array(16).fill(0.5));
  expect(zero.routing["combine_TEC"]!.toNumbers()).toEqual(new Array(16).fill(0.125));
});

test("sinkhornGate balances in training: tokens with the same preferred expert are spread over all experts", () => {
  const x = NdArray.from([4, 0, 0, 3, 0, 0, 2, 0, 0, 1, 0, 0], [4, 3], "f32");
  const gate = sinkhornGate({ ...sizes, numChoices: 1, numIterations: 50 }) as Gate;
  const greedy = choose(gate, x, { train: false, params: router }).routing["choices_TK"]!.toNumbers();
  expect(greedy).toEqual([2, 2, 2, 2]);
  const balanced = choose(gate, x, { params: router });
  expect(new Set(balanced.routing["choices_TK"]!.toNumbers()).size).toBeGreaterThan(1);
  // Weights are computed from the scores, not from their balanced form.
  const chosen = balanced.routing["choices_TK"]!.toNumbers();
  logitsOf(x).forEach((logits, token) =>
    expect(balanced.routing["weights_TK"]!.toNumbers()[token]).toBeCloseTo(sigmoidOf(logits[chosen[token]!]!), 5),
  );
});

describe("noise", () => {
  const gate = noisyTopKGate({ ...sizes, numChoices: 2, noise: 2 }) as Gate;
  const x = NdArray.from(new Array<number>(3 * 40).fill(0.5), [40, 3], "f32");
  const spread = (options: ChooseOptions): number[] =>
    choose(gate, x, { params: router, ...options }).figures["load_E"]!.toNumbers();

  test("sends equal tokens to different experts in training, by the key, and not otherwise", () => {
    expect(spread({ train: false }).filter((load) => load > 0)).toHaveLength(2);
    expect(spread({}).filter((load) => load > 0).length).toBeGreaterThan(2);
    expect(spread({})).toEqual(spread({}));
    expect(spread({})).not.toEqual(spread({ key: keyOf(6) }));
  });

  test("requires a key in training", () => {
    const keyless = (own: Gate) => () =>
      runRanks(
        ((params: unknown, x_TD: Tensor) =>
          tensorsOf(own.choose(params, {}, x_TD, { train: true, tokenAxes: [] }))) as never,
        [[begin(own).params, x]] as never,
      );
    expect(keyless(gate)).toThrow(/noisyTopKGate: training draws random numbers, but the step passed no key/);
    expect(keyless(switchGate({ ...sizes, jitter: 0.1 }) as Gate)).toThrow(/switchGate: training draws random numbers/);
    expect(keyless(switchGate(sizes) as Gate)).not.toThrow();
  });
});

test("balancingBiasGate: biases of busy experts fall, those of idle experts rise, and biases influence choices but not weights", () => {
  const gate = balancingBiasGate({ ...sizes, numChoices: 1, updateRate: 0.25 }) as Gate;
  const x = NdArray.from([1, 0, 0, 1, 0, 0, 0, 1, 0], [3, 3], "f32"); // two for expert 2, one for expert 1
  const first = choose(gate, x, { params: router });
  expect(first.routing["choices_TK"]!.toNumbers()).toEqual([2, 2, 1]);
  expect(first.state["bias_E"]!.toNumbers()).toEqual([0.25, -0.25, -0.25, 0.25]);
  expect(choose(gate, x, { params: router, train: false }).state["bias_E"]!.toNumbers()).toEqual([0, 0, 0, 0]);
  const biased = choose(gate, x, { params: router, state: { bias_E: NdArray.from([9, 0, 0, 0], [4], "f32") } });
  expect(biased.routing["choices_TK"]!.toNumbers()).toEqual([0, 0, 0]);
  expect(biased.routing["weights_TK"]!.toNumbers()).toEqual([1, 1, 1]);
  expect(biased.state["bias_E"]!.toNumbers()).toEqual([8.75, 0.25, 0.25, 0.25]);
  const two = choose(balancingBiasGate({ ...sizes, numChoices: 2 }) as Gate, x, {
    params: router,
    state: { bias_E: NdArray.from([9, 0, 0, 8], [4], "f32") },
  });
  const [first2, last2] = logitsOf(x)[0]!
    .map(sigmoidOf)
    .filter((_, e) => e === 0 || e === 3) as [number, number];
  expect(two.routing["choices_TK"]!.toNumbers().slice(0, 2)).toEqual([0, 3]);
  expect(two.routing["weights_TK"]!.toNumbers()[0]).toBeCloseTo(first2 / (first2 + last2), 5);
});

const rowsThatChoose = gateRows.filter(({ name }) => name !== "softGate");

test.each(rowsThatChoose)("$name: weights are nonnegative, a token's experts differ, and figures count them", (row) => {
  const gate = row.gate(sizes);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }).chain(tokensOf), (x) => {
      const { routing, figures } = choose(gate, x);
      const load = new Array<number>(numExperts).fill(0);
      rowsOf(routing["choices_TK"]!).forEach((own) => {
        const chosen = own.filter((expert) => expert !== -1);
        expect(new Set(chosen).size).toBe(chosen.length);
        for (const expert of chosen) load[expert]!++;
      });
      for (const own of rowsOf(routing["weights_TK"]!)) {
        for (const weight of own) expect(weight).toBeGreaterThanOrEqual(0);
        const total = own.reduce((a, b) => a + b, 0);
        if (row.sharesOfOne) expect(total).toBeLessThan(1 + 1e-5);
        expect(total).toBeLessThan(numExperts);
      }
      expect(figures["load_E"]!.toNumbers()).toEqual(load);
      const entropy = figures["entropy"]!.item();
      expect(entropy).toBeGreaterThanOrEqual(0);
      expect(entropy).toBeLessThan(Math.log(numExperts) + 1e-5);
    }),
    { numRuns: examples(12, 150) },
  );
});

test("sigmoid weights may sum to more than 1; weights of a mean over chosen experts sum to 1", () => {
  const x = NdArray.from([2, 0, 0], [1, 3], "f32");
  const total = (gate: Gate): number =>
    choose(gate, x, { params: router, train: false })
      .routing["weights_TK"]!.toNumbers()
      .reduce((a, b) => a + b, 0);
  expect(total(sigmoidGate({ ...sizes, numChoices: 2 }) as Gate)).toBeGreaterThan(1.5);
  expect(total(noisyTopKGate({ ...sizes, numChoices: 2 }) as Gate)).toBeCloseTo(1, 6);
  expect(total(balancingBiasGate({ ...sizes, numChoices: 3 }) as Gate)).toBeCloseTo(1, 6);
});

test.each(gateRows)("$name converts 16-bit tokens to f32", (row) => {
  const gate = row.gate(sizes);
  const { params, state } = begin(gate);
  const x = NdArray.from([0.1, 0.7, -0.3, 1.3, -0.2, 0.9], [2, 3], "f32");
  const through = (dtype: "f16" | "f32") =>
    runRanks(
      ((own: unknown, held: unknown, x_TD: Tensor, key: Tensor) => {
        const half_TD = cast(x_TD, "f16");
        const gated = gate.choose(own, held, dtype === "f16" ? half_TD : cast(half_TD, "f32"), {
          train: true,
          key,
          tokenAxes: [],
        });
        return tensorsOf(gated).routing;
      }) as never,
      [[params, state, x, keyOf(1)]] as never,
    )[0] as unknown as Arrays;
  const [half, wide] = [through("f16"), through("f32")];
  for (const name of Object.keys(wide)) {
    expect(half[name]!.dtype).toBe(name === "choices_TK" ? "i32" : "f32");
    expect(half[name]!.toNumbers()).toEqual(wide[name]!.toNumbers());
  }
});

describe("tokens in another order give the same result", () => {
  // No equal tokens: if a choice depends on all tokens, the order breaks ties.
  const distinct = NdArray.from(
    Array.from({ length: 18 }, (_, i) => Math.sin(5 * i + 2) * 2),
    [6, 3],
    "f32",
  );
  const random = /jitter|noise$|^noisyTopKGate$/;
  const orders = fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6, maxLength: 6 });

  test.each(gateRows.filter(({ name }) => !random.test(name) || name.includes("without")))("$name", (row) => {
    const gate = row.gate(sizes);
    const straight = choose(gate, distinct).routing;
    fc.assert(
      fc.property(orders, (order) => {
        const rows = rowsOf(distinct);
        const permuted = choose(
          gate,
          NdArray.from(
            order.flatMap((token) => rows[token]!),
            [6, 3],
            "f32",
          ),
        ).routing;
        for (const name of Object.keys(straight)) {
          const expected = rowsOf(straight[name]!);
          rowsOf(permuted[name]!).forEach((own, i) =>
            own.forEach((value, k) => expect(value).toBeCloseTo(expected[order[i]!]![k]!, 5)),
          );
        }
      }),
      { numRuns: examples(8, 60) },
    );
  });
});

test("gradients reach the router through the weights of each gate", () => {
  const x = NdArray.from([0.1, 0.7, -0.3, 1.3, -0.2, 0.9], [2, 3], "f32");
  for (const { name, gate: gateOf } of gateRows) {
    const gate = gateOf(sizes);
    const { params, state } = begin(gate);
    const loss = (own: unknown, held: unknown, x_TD: Tensor, key: Tensor): Tensor => {
      const { routing } = gate.choose(own, held, x_TD, { train: true, key, tokenAxes: [] });
      const weight = routing.kind === "choices" ? routing.weights_TK : routing.combine_TEC;
      return sum(multiply(weight, weight));
    };
    const [[, gradients]] = runRanks(
      valueAndGrad(loss as never) as never,
      [[params, state, x, keyOf(1)]] as never,
    ) as unknown as [[NdArray, Arrays]];
    const main = gradients["weight_DE"] ?? gradients["experts_EJ"] ?? gradients["slots_RD"];
    // Softmax over all K = E equals the full softmax, and also has a gradient.
    expect(
      main!.toNumbers().some((value) => Math.abs(value) > 1e-6),
      name,
    ).toBe(true);
    for (const array of Object.values(gradients)) expect(array.toNumbers().every(Number.isFinite), name).toBe(true);
  }
});

test("rejects invalid gate settings with the cure", () => {
  expect(() => switchGate({ width: 0, numExperts: 2 })).toThrow(/width is 0; use a whole number from 1/);
  expect(() => switchGate({ ...sizes, jitter: 1 })).toThrow(/jitter is 1; use a number from 0 to below 1/);
  expect(() => sigmoidGate({ ...sizes, numChoices: 5 })).toThrow(/numChoices is 5.*use 1 to 4 choices/);
  expect(() => noisyTopKGate({ ...sizes, numChoices: 1 })).toThrow(/no gradient reaches the router; use switchGate/);
  expect(() => noisyTopKGate({ ...sizes, numChoices: 2, noise: -1 })).toThrow(/noise is -1; use a finite number above/);
  expect(() => cosineGate({ ...sizes, numChoices: 2, temperature: 0.001 })).toThrow(/use 0.01 or more/);
  expect(() => expertChoiceGate({ ...sizes, meanChoices: 0 })).toThrow(/meanChoices is 0/);
  expect(() => balancingBiasGate({ ...sizes, numChoices: 2, updateRate: NaN })).toThrow(/updateRate is NaN/);
  expect(() => softGate({ ...sizes, slots: 1.5 })).toThrow(/slots is 1.5/);
  expect(() => sinkhornGate({ ...sizes, numChoices: 2, numIterations: 0 })).toThrow(/numIterations is 0/);
  expect(() => choose(switchGate({ width: 4, numExperts: 2 }) as Gate, NdArray.from([1, 2], [1, 2], "f32"))).toThrow(
    /tokens \[1, 2\] do not match width 4; give one row per token, \[T, 4\]/,
  );
});
