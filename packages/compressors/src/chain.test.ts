import { add, cast, multiply, NdArray, slice, type Tensor } from "@skein/tensor-core";
import { normalArray } from "@skein/testing";
import { describe, expect, it } from "vitest";
import { runWorld } from "../test/world.ts";
import { bucketOf } from "./bucket.ts";
import { chainCompressors } from "./chain.ts";
import { type Compressor, defineCompressor } from "./compressor.ts";
import { eightBitCompressor } from "./eight-bit.ts";
import { topKCompressor } from "./top-k.ts";

const bucketOfLength = (n: number) => bucketOf([{ path: "v", shape: [n] }]);

/** Test compressor that sends the gradient plus the first word of the random key. */
const marked: Compressor<[], { readonly values: Tensor }> = defineCompressor<[], { readonly values: Tensor }>({
  name: "marked",
  aggregation: "gather",
  biased: false,
  scope: "tensor",
  init: () => [],
  encode: (gradient, state, context) => ({
    payload: { values: add(gradient, multiply(cast(slice(context!.key!, [0], [1]), "f32"), 2 ** -32)) },
    state,
  }),
  decode: ({ values }) => values,
  payloadBytes: ({ shape }) => 4 * shape[0]!,
});

describe("chainCompressors", () => {
  it("keeps the indices of the outer compressor, and the inner compressor's version of the values", () => {
    const [n, k] = [60, 12];
    const chain = chainCompressors(topKCompressor({ k }), eightBitCompressor({ blockSize: 4 }));
    const gradient = normalArray([n], 1);
    const [result] = runWorld(
      (g: Tensor) => {
        const { payload } = chain.encode(g, chain.init(g));
        return { payload, decoded: chain.decode(payload, g), kept: topKCompressor({ k }).encode(g, []).payload };
      },
      [[gradient]],
    );
    const { payload, decoded, kept } = result!;
    expect(payload.indices.toNumbers()).toEqual(kept.indices.toNumbers());
    const values = kept.values.toNumbers();
    payload.indices.toNumbers().forEach((position, i) => {
      const block = values.slice(4 * Math.floor(i / 4), 4 * Math.floor(i / 4) + 4);
      expect(Math.abs(decoded.toNumbers()[position]! - values[i]!)).toBeLessThanOrEqual(
        (Math.max(...block.map(Math.abs)) / 254) * 1.0001,
      );
    });
    expect(decoded.toNumbers().filter((v) => v !== 0).length).toBe(k);
    expect(decoded.toNumbers()).not.toEqual(gradient.toNumbers());
    // Indices, codes, and a scale for each block of 4.
    expect(chain.payloadBytes(bucketOfLength(n))).toBe(4 * k + k + 4 * (k / 4));
    expect(chain.bytesSent(bucketOfLength(n), 5)).toBe(4 * (4 * k + k + 4 * (k / 4)));
  });

  it("is biased if either compressor is biased, and summed if both are summed", () => {
    expect(chainCompressors(marked, topKCompressor({ k: 1 })).biased).toBe(true);
    expect(chainCompressors(marked, marked).biased).toBe(false);
    expect(chainCompressors({ ...marked, aggregation: "sum" }, marked).aggregation).toBe("gather");
    expect(chainCompressors({ ...marked, aggregation: "sum" }, { ...marked, aggregation: "sum" }).aggregation).toBe(
      "sum",
    );
  });

  it("gives the inner compressor another key", () => {
    const twice = chainCompressors(marked, marked);
    const [sum] = runWorld(
      (g: Tensor, key: Tensor) => {
        const context = { key };
        const once = marked.encode(g, [], context).payload.values;
        const chained = twice.encode(g, twice.init(g), context).payload.values.values;
        return { once, chained };
      },
      [[NdArray.from([0]), NdArray.from([2 ** 31, 7], [2], "u32")]],
    );
    expect(sum!.once.item()).toBe(0.5);
    expect(Math.abs(sum!.chained.item() - 2 * sum!.once.item())).toBeGreaterThan(1e-3);
  });

  it("rejects payloads of a length known only at run time, and payloads without values", () => {
    const ragged = {
      ...marked,
      rows: ({ values }: { readonly values: Tensor }) => cast(slice(values, [0], [1]), "i32"),
    };
    expect(() => chainCompressors(ragged, marked)).toThrow(/payload length of marked is known only at run time/);
    const bare = chainCompressors(eightBitCompressor() as never, marked);
    expect(() => bare.payloadBytes(bucketOfLength(4))).toThrow(/payload of 8-bit has no values/);
  });
});
