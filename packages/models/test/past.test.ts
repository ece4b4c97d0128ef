import { evaluate, NdArray, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyAfterPrefix, applyPrefix, gpt, gpt2, type KeyValues, llama, type Model } from "../src/index.ts";

const reference = referenceBackend();
const [vocabulary, room] = [7, 6];

const sizes = { vocabulary, width: 8, numLayers: 2, numHeads: 2 };
const models: readonly (readonly [name: string, model: Model])[] = (
  [
    ["gpt", gpt({ ...sizes, contextLength: room })],
    [
      "gpt with learned positions and layer norm, with recomputed blocks",
      gpt({ ...sizes, contextLength: room, positions: "learned", norm: "layer", recompute: "blocks" }),
    ],
    ["gpt2", gpt2({ ...sizes, contextLength: room, hidden: 10, recompute: "blocks" })],
    [
      "llama with grouped heads and scaled positions",
      llama({
        ...sizes,
        numHeads: 4,
        numKeyHeads: 2,
        headWidth: 4,
        hidden: 5,
        rotaryScaling: { type: "linear", factor: 2 },
        recompute: "blocks",
      }),
    ],
  ] as const
).map(([name, model]) => [name, model as Model]);

const tokenRows = (rows: readonly (readonly number[])[]): NdArray =>
  NdArray.from(rows.flat(), [rows.length, rows[0]!.length], "i32");

/** Generates two sequences of tokens, and the lengths of the chunks in which the model reads the sequences. */
const readings = fc
  .array(fc.integer({ min: 1, max: room }), { minLength: 1, maxLength: room })
  .map((lengths) => {
    let left = room;
    return lengths.map((length) => [Math.min(length, left), (left -= Math.min(length, left))][0]!).filter((n) => n > 0);
  })
  .chain((lengths) => {
    const count = lengths.reduce((sum, length) => sum + length, 0);
    const row = fc.array(fc.nat(vocabulary - 1), { minLength: count, maxLength: count });
    return fc.record({ lengths: fc.constant(lengths), rows: fc.tuple(row, row), junk: fc.nat(vocabulary - 1) });
  });

describe.each(models)("%s", (_, model) => {
  const init = evaluate((key: Tensor) => model.init(key), reference)(randomKey(5));

  test("returns the same logits for chunks of any lengths as for the whole sequence", async () => {
    const { params, state } = (await init) as { params: unknown; state: unknown };
    const whole = evaluate(
      (weights: unknown, own: unknown, tokens: Tensor) => model.apply(weights, own, tokens, { train: false })[0],
      reference,
    );
    const first = evaluate(
      (weights: unknown, own: unknown, tokens: Tensor) => applyPrefix(model, { params: weights, state: own, tokens }),
      reference,
    );
    const further = evaluate(
      (weights: unknown, own: unknown, tokens: Tensor, layers: readonly KeyValues[], length: Tensor) =>
        applyAfterPrefix(model, { params: weights, state: own, tokens }, layers, length),
      reference,
    );
    await fc.assert(
      fc.asyncProperty(readings, async ({ lengths, rows, junk }) => {
        const wanted = (await whole(params as never, state as never, tokenRows(rows) as never)) as unknown as NdArray;
        // Rows padded with arbitrary tokens up to the capacity.
        const filled = rows.map((row) => Array.from({ length: room }, (__, i) => (i < lengths[0]! ? row[i]! : junk)));
        let [logits, layers] = (await first(
          params as never,
          state as never,
          tokenRows(filled) as never,
        )) as unknown as [NdArray, readonly KeyValues[]];
        const collected: number[][] = [];
        const collect = (from: number, count: number): void => {
          const all = logits.toNumbers();
          const held = logits.shape[1]!;
          for (let row = 0; row < 2; row++)
            for (let i = 0; i < count; i++)
              collected[row * rows[0].length + from + i] = all.slice(
                (row * held + i) * vocabulary,
                (row * held + i + 1) * vocabulary,
              );
        };
        collect(0, lengths[0]!);
        let at = lengths[0]!;
        for (const length of lengths.slice(1)) {
          const piece = tokenRows(rows.map((row) => row.slice(at, at + length)));
          const before = NdArray.from([at], [], "i32");
          [logits, layers] = (await further(
            params as never,
            state as never,
            piece as never,
            layers as never,
            before as never,
          )) as unknown as [NdArray, readonly KeyValues[]];
          collect(at, length);
          at += length;
        }
        collected.flat().forEach((value, i) => expect(value).toBeCloseTo(wanted.toNumbers()[i]!, 4));
        expect(collected.flat()).toHaveLength(wanted.toNumbers().length);
      }),
      { numRuns: 15 },
    );
  });
});
