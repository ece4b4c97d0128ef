import { NdArray, type Tensor, trace } from "@skein/tensor-core";
import { nodeCost } from "@skein/tensor-core/backend";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  balanceLoss,
  byRandomOrder,
  capacityByFactor,
  capacityByMaximum,
  denseDispatcher,
  duplicateFreeDispatcher,
  expertChoiceGate,
  type ExpertShards,
  type Gate,
  geluExperts,
  hierarchicalDispatcher,
  type LevelMetadata,
  noisyTopKGate,
  raggedDispatcher,
  softGate,
  splitAfterGate,
  splitBeforeGate,
  swigluExperts,
  switchGate,
  type TokenDispatcher,
  withoutSplit,
  zLoss,
} from "../src/index.ts";
import { added, type Arrays, expectClose, expectCloseTrees } from "./close-trees.ts";
import { layerOf, type Options } from "./layers.ts";
import { counting } from "./routings.ts";
import { type AnyLayer, initRanks, type RankTokens, type StepResult, stepOnRanks } from "./step.ts";
import { keyOf, tokensOf, width } from "./tokens.ts";
import { joined, partsOf, runRanks } from "./world.ts";

// Rank r · N + n: experts are distributed over P ranks along "expert", and each expert is sharded over N ranks along
// "tensor".
const whole = "expert-shards";
const axes = { axis: "tensor", productAxis: whole } as const;
const hidden = 12;

interface Row {
  readonly name: string;
  readonly shards: ExpertShards;
  readonly dispatcher?: TokenDispatcher;
  /** Whether the N ranks that share an expert have the same tokens. */
  readonly isSame: boolean;
}

const overLevels = { axes: ["expert", "tensor"] };
const dispatchers: readonly (readonly [name: string, dispatcher: TokenDispatcher])[] = [
  ["dense", denseDispatcher()],
  ["ragged", raggedDispatcher()],
  ["hierarchical", hierarchicalDispatcher(overLevels)],
  ["duplicate-free", duplicateFreeDispatcher(overLevels)],
  ["duplicate-free over one level", duplicateFreeDispatcher({ axes: [whole] })],
];

const rows: readonly Row[] = [
  ...dispatchers.map(([name, dispatcher], i) => ({
    name: `split before the gate, ${name}`,
    shards: splitBeforeGate({ ...axes, tokens: i % 2 === 0 ? "same" : "own" }),
    dispatcher,
    isSame: i % 2 === 0,
  })),
  ...[1, 3].map((pieces) => ({
    name: `split after the gate, in ${pieces} pieces`,
    shards: splitAfterGate({ ...axes, pieces }),
    isSame: true,
  })),
  { name: "without a split, dense", shards: withoutSplit(axes), isSame: true },
  {
    name: "without a split, duplicate-free",
    shards: withoutSplit(axes),
    dispatcher: duplicateFreeDispatcher({ axes: ["expert"] }),
    isSame: true,
  },
];

interface Setting {
  readonly numRanks: number;
  readonly numShards: number;
  readonly numExperts: number;
  readonly numChoices: number;
  readonly placement: readonly number[];
  readonly chunks: number;
  /** Number of backward chunks, for dispatchers that support `runWithBackwardChunks`. */
  readonly backwardChunks: number;
  readonly isSwiglu: boolean;
  /** Tokens of all ranks and cotangents of their outputs. Tokens shared by several ranks are contained only once. */
  readonly tokens: readonly [x: NdArray, cotangent: NdArray];
}

/**
 * Generates settings. If tokens are split over ranks, the number of ranks divides the number of tokens. The number of
 * slots is arbitrary.
 */
const settingsFor = ({ shards }: Row): fc.Arbitrary<Setting> =>
  fc
    .record({
      numRanks: fc.constantFrom(1, 2),
      numShards: fc.constantFrom(1, 2, 3),
      each: fc.integer({ min: 1, max: 3 }),
      numTokens: fc.integer({ min: 1, max: 3 }),
    })
    .chain(({ numRanks, numShards, each, numTokens }) => {
      const numExperts = numRanks * each;
      const count = numRanks * (shards.gates === "own" ? numShards * numTokens : 2 * numTokens - 1);
      return fc.record({
        numRanks: fc.constant(numRanks),
        numShards: fc.constant(numShards),
        numExperts: fc.constant(numExperts),
        numChoices: fc.integer({ min: 1, max: numExperts }),
        placement: fc.shuffledSubarray([...Array(numExperts).keys()], { minLength: numExperts }),
        chunks: fc.constantFrom(1, 2),
        backwardChunks: fc.constantFrom(1, 2),
        isSwiglu: fc.boolean(),
        tokens: fc.tuple(tokensOf(count), tokensOf(count)),
      });
    });

const meshOf = ({ numRanks, numShards }: Pick<Setting, "numRanks" | "numShards">) => ({
  levels: { expert: numRanks, tensor: numShards },
  whole,
});

/** Returns two layers: one distributed over ranks, and the same layer on a single rank. */
const layersOf = (setting: Setting, { shards, dispatcher }: Row, options: Partial<Options> & Pick<Options, "gate">) => {
  const { placement, chunks, backwardChunks, isSwiglu } = setting;
  const canRechunk = shards.dispatcherFor(dispatcher).runWithBackwardChunks !== undefined;
  const sizes = { width, hidden, deviation: 0.7, outputDeviation: 0.7 };
  const both = { experts: (isSwiglu ? swigluExperts(sizes) : geluExperts(sizes)) as never, placement, ...options };
  return {
    layer: layerOf({
      ...both,
      shards,
      chunks,
      ...(canRechunk && { backwardChunks }),
      ...(dispatcher && { dispatcher }),
    }),
    one: layerOf(both),
  };
};

/** Returns each rank's inputs, selected from the tokens of all ranks. */
const ranksOf = ({ numRanks, numShards, tokens }: Setting, isSame: boolean): RankTokens[] => {
  const [xs, cotangents] = tokens.map((all) => partsOf(all, isSame ? numRanks : numRanks * numShards)) as [
    NdArray[],
    NdArray[],
  ];
  return Array.from({ length: numRanks * numShards }, (_, rank) => {
    const part = isSame ? Math.floor(rank / numShards) : rank;
    return [xs[part]!, cotangents[part]!, keyOf(50 + part)] as const;
  });
};

/** Concatenates results, with one result per group of ranks whose results are equal. */
const onceOf = (results: readonly NdArray[], { numShards }: Setting, isSame: boolean): NdArray =>
  joined(results.filter((_, rank) => !isSame || rank % numShards === 0));

/** Joins the shards of each N ranks along a dimension, then the results of the P groups along the first dimension. */
const wholeOfParts = (parts: readonly NdArray[], dim: number, numShards: number): NdArray => {
  const ofRanks = Map.groupBy(parts.keys(), (rank) => Math.floor(rank / numShards));
  return joined(
    [...ofRanks.values()].map((ranks) => {
      const { shape } = parts[0]!;
      const inner = shape.slice(dim).reduce((product, size) => product * size, 1);
      const numbers = ranks.map((rank) => parts[rank]!.toNumbers());
      const outer = numbers[0]!.length / inner;
      const together = Array.from({ length: outer }, (_, i) =>
        numbers.flatMap((own) => own.slice(i * inner, (i + 1) * inner)),
      );
      return NdArray.from(
        together.flat(),
        shape.map((size, at) => (at === dim ? size * numShards : size)),
      );
    }),
  );
};

const wholeTree = (layer: AnyLayer, trees: readonly Arrays[], numShards: number): Arrays =>
  Object.fromEntries(
    Object.keys(trees[0]!).map((name) => {
      const [first, second] = layer.sharding(`experts.${name}`);
      expect(first).toEqual({ axis: "expert", dim: 0 });
      expect(second!.axis).toBe("tensor");
      return [
        name,
        wholeOfParts(
          trees.map((tree) => tree[name]!),
          second!.dim,
          numShards,
        ),
      ];
    }),
  );

const scaled = (tree: Arrays, factor: number): Arrays =>
  Object.fromEntries(
    Object.entries(tree).map(([name, array]) => [
      name,
      NdArray.from(
        array.toNumbers().map((value) => factor * value),
        array.shape,
      ),
    ]),
  );

const sumOf = (arrays: readonly NdArray[]): number[] =>
  arrays.map((array) => array.toNumbers()).reduce((total, numbers) => total.map((value, i) => value + numbers[i]!));

/**
 * Compares the outputs, and the gradients of the sum of all ranks' losses. In this sum, tokens shared by N ranks count
 * N times.
 *
 * @param reference result of a single rank with all tokens, each once.
 */
const expectAsOne = (
  setting: Setting,
  { isSame }: Row,
  layer: AnyLayer,
  results: readonly StepResult[],
  reference: Pick<StepResult, "y" | "xGradient" | "gradients">,
): void => {
  const { numShards } = setting;
  const times = isSame ? numShards : 1;
  expectClose(
    onceOf(
      results.map(({ y }) => y),
      setting,
      isSame,
    ).toNumbers(),
    reference.y.toNumbers(),
    "y",
  );
  const xGradients = Array.from({ length: times }, (_, n) =>
    joined(results.filter((__, rank) => rank % times === n).map(({ xGradient }) => xGradient)),
  );
  const expected = reference.xGradient.toNumbers().map((value) => times * value);
  expectClose(sumOf(xGradients), expected, "x");
  const gradients = results.map((result) => result.gradients);
  const experts = wholeTree(
    layer,
    gradients.map((own) => own.experts),
    numShards,
  );
  expectCloseTrees(experts, scaled(reference.gradients.experts, times), "experts");
  for (const name of Object.keys(reference.gradients.gate))
    expectClose(
      sumOf(gradients.map(({ gate }) => gate[name]!)),
      reference.gradients.gate[name]!.toNumbers().map((value) => times * value),
      `gate.${name}`,
    );
};

const lossy = (setting: Setting): Gate =>
  switchGate({
    width,
    numExperts: setting.numExperts,
    numChoices: setting.numChoices,
    losses: [balanceLoss({ coefficient: 0.5 }), zLoss({ coefficient: 0.5 })],
  }) as Gate;

describe.each(rows)("$name", (row) => {
  const { isSame } = row;

  test("ranks with sharded experts equal a single rank with all tokens, in forward, figures and all gradients", () => {
    fc.assert(
      fc.property(settingsFor(row), (setting) => {
        const { numRanks, numShards, tokens } = setting;
        const all = numRanks * numShards;
        const { layer, one } = layersOf(setting, row, { gate: lossy(setting), capacity: capacityByMaximum() });
        const mesh = meshOf(setting);
        const initial = initRanks(layer, all, mesh);
        const [alone] = initRanks(one, 1);
        const first = wholeTree(
          layer,
          initial.map(({ params }) => params.experts),
          numShards,
        );
        for (const [name, array] of Object.entries(alone!.params.experts))
          expect(first[name]!.toNumbers()).toEqual(array.toNumbers());
        const results = stepOnRanks(() => layer, initial, ranksOf(setting, isSame), {
          ...mesh,
          lossScale: (isSame ? numShards : 1) / all,
        });
        const [reference] = stepOnRanks(() => one, [alone!], [[...tokens, keyOf(1)]]);
        expectAsOne(setting, row, layer, results, reference!);
        for (const { figures, state } of results) {
          expect(state).toEqual(reference!.state);
          for (const name of ["load_E", "entropy", "droppedShare"] as const)
            expectClose(figures[name].toNumbers(), reference!.figures[name].toNumbers(), name);
        }
        const losses = results.map(({ loss }) => loss.item());
        expectClose([losses.reduce((sum, loss) => sum + loss, 0) / all], [reference!.loss.item()], "loss");
      }),
      { numRuns: examples(8, 150) },
    );
  });

  // If the layer itself splits tokens before the gate, ranks have other tokens, keys and slots than a single rank.
  test.skipIf(isSame && row.shards.splits)(
    "draws and drops equal those of one rank that processes their tokens in sequence",
    () => {
      fc.assert(
        fc.property(settingsFor(row), fc.constantFrom(0.5, 1, 1.5), fc.nat(2), (setting, factor, kind) => {
          fc.pre(setting.numExperts > 1);
          const { numRanks, numShards, numExperts } = setting;
          const gate = [
            noisyTopKGate({ width, numExperts, numChoices: Math.max(2, setting.numChoices) }),
            expertChoiceGate({ width, numExperts }),
            softGate({ width, numExperts, slots: 2 }),
          ][kind] as Gate;
          const capacity = capacityByFactor({ factor, dropOrder: byRandomOrder });
          const { layer, one } = layersOf(setting, row, { gate, capacity, tokenAxes: [] });
          const all = numRanks * numShards;
          const mesh = meshOf(setting);
          const ranks = ranksOf(setting, isSame);
          const results = stepOnRanks(() => layer, initRanks(layer, all, mesh), ranks, mesh);
          const each = ranks
            .filter((_, rank) => !isSame || rank % numShards === 0)
            .map((own) => stepOnRanks(() => one, initRanks(one, 1), [own])[0]!);
          expectAsOne(setting, row, layer, results, {
            y: joined(each.map(({ y }) => y)),
            xGradient: joined(each.map(({ xGradient }) => xGradient)),
            gradients: {
              experts: added(each.map(({ gradients }) => gradients.experts)),
              gate: added(each.map(({ gradients }) => gradients.gate)),
            },
          });
        }),
        { numRuns: examples(5, 100) },
      );
    },
  );
});

test("ranks that split the same tokens draw different noise", () => {
  const gate = noisyTopKGate({ width, numExperts: 4, numChoices: 2, noise: 0.25 }) as Gate;
  const shards = splitBeforeGate(axes);
  const layer = layerOf({ gate, shards, capacity: capacityByMaximum() });
  // Both halves of the tokens are equal, so choices differ only by noise.
  const half = counting([8, width], 1).toNumbers();
  const x = NdArray.from([...half, ...half], [16, width]);
  const mesh = { levels: { expert: 1, tensor: 2 }, whole };
  const [result] = stepOnRanks(
    () => layer,
    initRanks(layer, 2, mesh),
    Array.from({ length: 2 }, () => [x, x, keyOf(5)] as const),
    mesh,
  );
  const y = partsOf(result!.y, 2).map((own) => own.toNumbers());
  expect(y[0]).not.toEqual(y[1]);
});

describe("work", () => {
  const gate = switchGate({ width, numExperts: 4 }) as Gate;
  const mesh = { expert: 2, tensor: 2, [whole]: 4 };

  /** Returns the forward flops of one rank's experts, for 16 tokens. */
  const flopsOf = (shards: ExpertShards): number => {
    const layer = layerOf({
      gate,
      shards,
      experts: geluExperts({ width, hidden }) as never,
      capacity: capacityByFactor({ factor: 1 }),
    });
    const forward = (key: Tensor, x: Tensor): Tensor => {
      const { params, state } = layer.init(key);
      return layer.apply(params, state, x, { train: true })[0];
    };
    const { graph } = trace(forward, [keyOf(1), counting([16, width])], { mesh });
    return graph.nodes
      .filter(({ op }) => op === "grouped-matmul")
      .reduce((sum, node) => sum + nodeCost(graph, node).flops, 0);
  };

  test("of experts is N times as much without a split, and equal before and after the gate", () => {
    const [before, after, none] = [splitBeforeGate(axes), splitAfterGate(axes), withoutSplit(axes)].map(flopsOf);
    // Two experts, four slots of each for the tokens of each of two ranks; half of the hidden width.
    expect(before).toBe(2 * 4 * 2 * (2 * 2 * width * (hidden / 2)));
    expect(after).toBe(before);
    expect(none).toBe(2 * before!);
  });
});

test("over levels a token is sent once to all shards of its experts", () => {
  const [numRanks, numExperts] = [4, 8];
  const gate = switchGate({ width, numExperts, numChoices: 3 }) as Gate;
  /** Returns the number of copies that each rank sends to each group along the outermost level. */
  const leavingOf = (shards: ExpertShards | undefined, levels: Record<string, number>): number[][] => {
    const dispatcher = duplicateFreeDispatcher({ axes: Object.keys(levels) });
    const leaving: Tensor[] = [];
    const seeing: TokenDispatcher = {
      ...dispatcher,
      dispatch: (...args) => {
        const dispatched = dispatcher.dispatch(...args);
        leaving.push((dispatched.metadata as LevelMetadata)[0]!.hops[0]!.leaving_g);
        return dispatched;
      },
    } as TokenDispatcher;
    const layer = layerOf({
      gate,
      dispatcher: seeing,
      experts: geluExperts({ width, hidden }) as never,
      capacity: capacityByMaximum(),
      tokenAxes: [],
      ...(shards && { shards }),
    });
    const ranks = Array.from(
      { length: numRanks },
      (_, rank) => [keyOf(2), counting([6, width], rank)] satisfies [NdArray, NdArray],
    );
    return runRanks(
      (key: Tensor, x: Tensor) => {
        const { params, state } = layer.init(key);
        leaving.length = 0;
        layer.apply(params, state, x, { train: true });
        return leaving[0]!;
      },
      ranks,
      levels,
      shards === undefined ? "expert" : whole,
    ).map((own) => (own as unknown as NdArray).toNumbers());
  };
  const shards = splitBeforeGate({ ...axes, tokens: "own" });
  // Hosts of two ranks: each host has the shards of four complete experts, or two complete experts on each rank.
  const ofShards = leavingOf(shards, { expert: 2, tensor: 2 });
  const ofWholes = leavingOf(undefined, { hosts: 2, inside: 2 });
  expect(ofShards).toEqual(ofWholes);
  for (const copies of ofShards.flat()) expect(copies).toBeLessThanOrEqual(6);
});

describe("rejects in one line", () => {
  const gate = switchGate({ width, numExperts: 4 }) as Gate;
  const build = (options: Partial<Options>) => () => layerOf({ gate, ...options });
  const initialize =
    (options: Partial<Options>, levels: Record<string, number>, numRanks = 2) =>
    () =>
      initRanks(layerOf({ gate, ...options }), numRanks, { levels, whole });
  const stepped = (shards: ExpertShards, numTokens: number) => () => {
    const layer = layerOf({ gate, shards });
    const mesh = { levels: { expert: 1, tensor: 2 }, whole };
    const x = counting([numTokens, width]);
    const ranks = [0, 1].map(() => [x, x, keyOf(1)] as const);
    return stepOnRanks(() => layer, initRanks(layer, 2, mesh), ranks, mesh);
  };
  const { hiddenDims: _, ...blind } = geluExperts({ width, hidden });
  test.each<[string, () => unknown, RegExp]>([
    [
      "a dispatcher of slots",
      build({ shards: splitAfterGate(axes), dispatcher: denseDispatcher() }),
      /leave the dispatcher out/,
    ],
    [
      "one axis for both",
      () => splitBeforeGate({ axis: "tensor", productAxis: "tensor" }),
      /splitBeforeGate: axis "tensor" is both the axis of the shards and the product axis/,
    ],
    ["tokens of a third kind", () => splitBeforeGate({ ...axes, tokens: "all" as never }), /tokens are all; use same/],
    ["no pieces", () => splitAfterGate({ ...axes, pieces: 0 }), /splitAfterGate: pieces is 0; use a whole number/],
    [
      "experts without hiddenDims",
      initialize({ shards: withoutSplit(axes), experts: blind as never }, { expert: 1, tensor: 2 }),
      /"down_FD" is not among hiddenDims \[\]; name its hidden dimension, or leave shards out/,
    ],
    [
      "a hidden width that is not divisible by the ranks",
      initialize(
        { shards: withoutSplit(axes), experts: geluExperts({ width, hidden: 5 }) as never },
        { expert: 1, tensor: 2 },
      ),
      /dimension 0 of \[5, 3\] has 5, which do not divide among the 2 ranks of axis "tensor"/,
    ],
    [
      "tokens that are not divisible by the ranks",
      stepped(splitBeforeGate(axes), 3),
      /has 3, which do not divide among the 2 ranks/,
    ],
  ])("%s", (__, run, message) => expect(run).toThrow(message));

  test("axes with another product", () => {
    const layer = layerOf({ gate, shards: splitBeforeGate({ ...axes, tokens: "own" }) });
    const forward = (key: Tensor, x: Tensor): Tensor => {
      const { params, state } = layer.init(key);
      return layer.apply(params, state, x, { train: true })[0];
    };
    expect(() =>
      trace(forward, [keyOf(1), counting([4, width])], { mesh: { expert: 2, tensor: 2, [whole]: 2 } }),
    ).toThrow(/2 ranks along "expert" × 2 along "tensor" are 4, but axis "expert-shards" has 2/);
  });
});
