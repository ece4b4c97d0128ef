// Shapes: B batch, T positions, D width, V vocabulary, F hidden width of the feed-forward layers.
import { readFileSync } from "node:fs";
import {
  elementCount,
  flattenTree,
  full,
  gelu,
  matmul,
  type NdArray,
  normal,
  randomKey,
  type Tensor,
  type TensorSpec,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";
import { uniformArray } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bert,
  type FeedForwardLayer,
  gpt,
  gpt2,
  type GptOptions,
  type GptParams,
  type LabelledBatch,
  llama,
  type Model,
  vit,
} from "../src/index.ts";
import { expectSame, onMesh, type Ranks, wholeTree } from "./tensor-ranks.ts";

const countParameters = (model: Model<never, never>): number => {
  let count = 0;
  trace(
    (key: Tensor) => {
      const { leaves } = flattenTree<TensorSpec>(model.init(key).params);
      count = leaves.reduce((sum, { shape }) => sum + elementCount(shape), 0);
      return key;
    },
    [{ dtype: "u32", shape: [2] }] as never,
  );
  return count;
};

const size = (max: number) => fc.integer({ min: 1, max });
const sizes = fc.record({
  vocabulary: size(9),
  contextLength: size(9),
  numLayers: size(3),
  numHeads: size(3),
  hidden: size(9),
  tiedHead: fc.boolean(),
});

describe("a decoder has the number of parameters of its documentation", () => {
  test("gpt", () => {
    const options = fc.record({
      base: sizes,
      headWidth: size(3).map((half) => 2 * half),
      positions: fc.constantFrom("rotary" as const, "learned" as const),
      norm: fc.constantFrom("rms" as const, "layer" as const),
      activation: fc.constantFrom("gelu" as const, "swiglu" as const),
    });
    fc.assert(
      fc.property(options, ({ base, headWidth, ...kinds }) => {
        const { vocabulary: V, contextLength: T, numLayers: L, numHeads, hidden: F, tiedHead } = base;
        const D = numHeads * headWidth;
        const ofNorm = kinds.norm === "layer" ? 2 * D : D;
        const block = 4 * D * D + (kinds.activation === "gelu" ? 2 : 3) * D * F + 2 * ofNorm;
        const ends = V * D + (kinds.positions === "learned" ? T * D : 0) + (tiedHead ? 0 : D * V);
        expect(countParameters(gpt({ ...base, ...kinds, width: D }) as never)).toBe(ends + L * block + ofNorm);
      }),
    );
  });

  test("gpt2", () => {
    fc.assert(
      fc.property(sizes, size(3), (base, headWidth) => {
        const { vocabulary: V, contextLength: T, numLayers: L, numHeads, hidden: F, tiedHead } = base;
        const D = numHeads * headWidth;
        const expected = V * D + T * D + L * (4 * D * D + 2 * D * F + 9 * D + F) + 2 * D + (tiedHead ? 0 : D * V);
        expect(countParameters(gpt2({ ...base, width: D }) as never)).toBe(expected);
      }),
    );
  });

  test("llama", () => {
    const options = fc.record({
      base: sizes,
      width: size(9),
      headWidth: size(3).map((half) => 2 * half),
      group: size(3),
      attentionBias: fc.constantFrom("none" as const, "inputs" as const, "all" as const),
      feedForwardBias: fc.boolean(),
    });
    fc.assert(
      fc.property(options, ({ base, width: D, headWidth: K, group, attentionBias, feedForwardBias }) => {
        const { vocabulary: V, numLayers: L, numHeads: G, hidden: F, tiedHead } = base;
        const H = G * group;
        const biases =
          (attentionBias === "none" ? 0 : H * K + 2 * G * K) +
          (attentionBias === "all" ? D : 0) +
          (feedForwardBias ? 2 * F + D : 0);
        const block = 2 * D * H * K + 2 * D * G * K + 3 * D * F + 2 * D + biases;
        const model = llama({
          ...base,
          width: D,
          numHeads: H,
          numKeyHeads: G,
          headWidth: K,
          attentionBias,
          feedForwardBias,
        });
        expect(countParameters(model as never)).toBe(V * D + L * block + D + (tiedHead ? 0 : D * V));
      }),
    );
  });
});

const batchSize = 4;
const length = 8;
const small = { vocabulary: 11, contextLength: length, width: 16, numLayers: 3, numHeads: 4, hidden: 12 } as const;
const text = {
  inputs: uniformArray([batchSize, length], 0, 11, 3, "i32"),
  labels: uniformArray([batchSize, length], 0, 11, 4, "i32"),
};

/** Returns loss and gradients of a training step on one rank, and the number of recomputed regions in its graph. */
const stepAlone = (model: Model<never, never>, batch: object) => {
  const step = (initKey: Tensor, key: Tensor, own: LabelledBatch) => {
    const { params, state } = model.init(initKey);
    return valueAndGrad((p: typeof params) => model.loss(p, state, own, { train: true, key })[0])(params);
  };
  const args = [randomKey(5), randomKey(9), batch];
  const [result] = onMesh(step, { data: 1, tensor: 1 }, () => args);
  const regions = new Set(trace(step, args as never).graph.nodes.map(({ region }) => region));
  return {
    numbers: flattenTree<NdArray>(result).leaves.map((leaf) => leaf.toNumbers()),
    numRegions: regions.size - 1, // the empty path is that of nodes outside of all regions
  };
};

test.each([
  ["gpt", (recompute) => gpt({ ...small, dropoutRate: 0.3, recompute }), text],
  ["gpt2", (recompute) => gpt2({ ...small, recompute }), text],
  ["llama", (recompute) => llama({ ...small, numKeyHeads: 2, recompute }), text],
  ["bert", (recompute) => bert({ ...small, head: "tokens", recompute }), text],
  [
    "vit",
    (recompute) => vit({ ...small, imageSize: [4, 4], patchSize: 2, inputChannels: 1, numClasses: 3, recompute }),
    { inputs: uniformArray([2, 4, 4, 1], 0, 1, 3), labels: uniformArray([2], 0, 3, 4, "i32") },
  ],
] satisfies [string, (recompute: "none" | "blocks") => unknown, object][])(
  "recomputation of blocks leaves the bits of loss and gradients of %s unchanged",
  (_, make, batch) => {
    const [stored, recomputed] = (["none", "blocks"] as const).map((each) => stepAlone(make(each) as never, batch));
    expect(recomputed!.numbers).toEqual(stored!.numbers);
    expect([stored!.numRegions, recomputed!.numRegions]).toEqual([0, small.numLayers]);
  },
);

/** The feed-forward branch of `gpt` as a layer of experts. */
const branchAsLayer: FeedForwardLayer = {
  init: (key) => ({ params: { up_DF: normal(key, [16, 12]), down_FD: normal(key, [12, 16]) }, state: {} }),
  apply: (params, state, x) => {
    const { up_DF, down_FD } = params as { readonly up_DF: Tensor; readonly down_FD: Tensor };
    return [matmul(gelu(matmul(x, up_DF)), down_FD), state, { loss: full([], 0), figures: {} }];
  },
};

/** Returns loss and gradients of a training step of a GPT, from the parameters of the GPT without changes. */
const stepOf = (options: Partial<GptOptions>, ranks: Ranks) => {
  const model = gpt({ ...small, dropoutRate: 0.3, ...options });
  const whole = gpt(small);
  const isWhole = (path: string): boolean => options.experts !== undefined && /\.(up|down)_/.test(path);
  const results = onMesh(
    (initKey: Tensor, key: Tensor, batch: LabelledBatch) => {
      const { params, state } = model.init(initKey);
      const plain = whole.init(initKey).params;
      /** Moves the matrices of the feed-forward branch to the experts of a block. */
      const moved = (own: GptParams): GptParams => ({
        ...own,
        blocks: own.blocks.map(({ up_DF, down_FD, ...block }, i) =>
          params.blocks[i]!.experts === undefined
            ? { ...block, up_DF: up_DF!, down_FD: down_FD! }
            : { ...block, experts: { up_DF, down_FD } },
        ),
      });
      const blocks = params.blocks.map(({ experts, ...block }, i) => {
        const { up_DF, down_FD } = plain.blocks[i]!;
        return experts === undefined ? block : { ...block, up_DF: up_DF!, down_FD: down_FD! };
      });
      const loss = (own: GptParams): Tensor => model.loss(moved(own), state, batch, { train: true, key })[0];
      return valueAndGrad(loss)({ ...params, blocks });
    },
    ranks,
    () => [randomKey(5), randomKey(9), text],
  );
  const losses = results.map(([loss]) => loss.item());
  return {
    loss: losses.reduce((sum, loss) => sum + loss, 0) / losses.length,
    gradients: wholeTree(
      results.map(([, gradients]) => gradients),
      ranks,
      { sharding: (path) => (isWhole(path) ? [] : (model.sharding?.(path) ?? [])) },
    ),
  };
};

describe("changes from outside leave loss and gradients of a GPT unchanged", () => {
  const plain = stepOf({}, { data: 1, tensor: 1 });
  const experts = { layer: branchAsLayer, every: 1 } as const;
  const matrices = { tensor: { axis: "tensor", sequence: false } } as const;
  const positions = { tensor: { axis: "tensor", sequence: true } } as const;
  const recompute = { recompute: "blocks" } as const;
  test.each<[string, Partial<GptOptions>, number]>([
    ["recomputation", recompute, 1],
    ["experts", { experts }, 1],
    ["sharded matrices", matrices, 2],
    ["sharded matrices and positions", positions, 4],
    ["sharded matrices, experts of own positions", { ...matrices, experts }, 2],
    ["sharded matrices, experts of all positions", { ...matrices, experts: { ...experts, positions: "all" } }, 2],
    ["all changes, experts of own positions", { ...positions, ...recompute, experts }, 4],
    [
      "all changes, experts of all positions",
      { ...positions, ...recompute, experts: { ...experts, positions: "all" } },
      4,
    ],
  ])("%s", (_, options, tensor) => {
    const changed = stepOf(options, { data: 1, tensor });
    expect(changed.loss).toBeCloseTo(plain.loss, 6);
    expectSame(changed.gradients, plain.gradients);
  });
});

test("parts of a decoder import no collective, no parallelism and no experts", () => {
  const imports = new Map<string, string>();
  const visit = (file: string): void => {
    if (imports.has(file)) return;
    const source = readFileSync(new URL(`../src/${file}`, import.meta.url), "utf8");
    const own = source.match(/^import [^;]*;/gm)?.join("\n") ?? "";
    imports.set(file, own);
    for (const [, next] of own.matchAll(/from "\.\/([^"]*)"/g)) visit(next!);
  };
  for (const file of ["gpt2.ts", "llama.ts", "bert.ts", "vit.ts", "bare-matrices.ts"]) visit(file);
  expect([...imports.keys()]).toContain("transformer-block.ts");
  const parallel = /\b(axis\w+|ownShard|gatherShards|sumToShards|all[A-Z]\w*|reduceScatter)\b|-parallel|expert/;
  for (const [file, own] of imports) expect(own, file).not.toMatch(parallel);
});
