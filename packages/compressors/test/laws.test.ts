import { add, byteLength, concat, flattenTree, NdArray, type Tensor, unflattenTree, type TensorSpec } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Compressor, identityCompressor, topKCompressor, withErrorFeedback } from "../src/index.ts";
import { runWorld } from "./world.ts";

interface Row {
  readonly compressor: Compressor;
  /** ‖u − C(u)‖² ≤ (1 − contraction(n))·‖u‖² for the first gradient. */
  readonly contraction: (n: number) => number;
  readonly bytes: (n: number) => number;
}

const share =
  (density: number) =>
  (n: number): number =>
    Math.max(1, Math.floor(density * n));

// Every compressor of this package earns its place by one row.
const rows: readonly Row[] = [
  { compressor: identityCompressor(), contraction: () => 1, bytes: (n) => 4 * n },
  { compressor: topKCompressor({ density: 0.1 }), contraction: (n) => share(0.1)(n) / n, bytes: (n) => 8 * share(0.1)(n) },
  { compressor: topKCompressor({ density: 1 }), contraction: () => 1, bytes: (n) => 8 * n },
  { compressor: topKCompressor({ k: 3 }), contraction: (n) => Math.min(3, n) / n, bytes: (n) => 8 * Math.min(3, n) },
  { compressor: withErrorFeedback(identityCompressor()), contraction: () => 1, bytes: (n) => 4 * n },
  {
    compressor: withErrorFeedback(topKCompressor({ density: 0.25 })),
    contraction: (n) => share(0.25)(n) / n,
    bytes: (n) => 8 * share(0.25)(n),
  },
];

// Few distinct values on purpose, so that ties are common; and outliers.
const value = fc.oneof(
  fc.constantFrom(0, -0, 1, -1, 2),
  fc.float({ noNaN: true, min: -100, max: 100 }),
  fc.constantFrom(1e20, -1e20, 1e-30),
);
const gradientOf = (length: number): fc.Arbitrary<number[]> => fc.array(value, { minLength: length, maxLength: length });
const gradient = fc.integer({ min: 1, max: 24 }).chain(gradientOf);

/** First encoding of a gradient: its payload and what the payload stands for. */
const encodeOnce = (compressor: Compressor) => (g: Tensor) => {
  const { payload } = compressor.encode(g, compressor.init(g));
  return { payload: flattenTree<Tensor>(payload).leaves, decoded: compressor.decode(payload, g) };
};

const squares = (values: readonly number[]): number => values.reduce((sum, v) => sum + v * v, 0);

describe.each(rows.map((row) => [row.compressor.name!, row] as const))("%s", (_, { compressor, contraction, bytes }) => {
  const once = (values: readonly number[]): { payload: NdArray[]; decoded: NdArray } =>
    runWorld(encodeOnce(compressor), [[NdArray.from(values)]])[0]! as never;

  it("sends exactly the bytes that it declares", () => {
    fc.assert(
      fc.property(gradient, (g) => {
        const spec: TensorSpec = { dtype: "f32", shape: [g.length] };
        const sent = once(g).payload.reduce((total, leaf) => total + byteLength(leaf), 0);
        expect([sent, compressor.payloadBytes(spec)]).toEqual([bytes(g.length), bytes(g.length)]);
      }),
    );
  });

  it("contracts as it declares", () => {
    fc.assert(
      fc.property(gradient, (g) => {
        const { decoded } = once(g);
        const dense = NdArray.from(g).toNumbers();
        const lost = squares(decoded.toNumbers().map((v, i) => dense[i]! - v));
        expect(lost).toBeLessThanOrEqual((1 - contraction(g.length)) * squares(dense) * (1 + 1e-12));
      }),
    );
  });

  it("gives the same bits twice, and keeps the shape", () => {
    fc.assert(
      fc.property(gradient, (g) => {
        const [first, second] = [once(g), once(g)];
        expect(second.payload.map((leaf) => leaf.bytes())).toEqual(first.payload.map((leaf) => leaf.bytes()));
        expect([first.decoded.dtype, first.decoded.shape]).toEqual(["f32", [g.length]]);
      }),
    );
    const [matrix] = runWorld(encodeOnce(compressor), [[NdArray.from([1, 2, 3, 4, 5, 6], [2, 3])]]);
    expect(matrix!.decoded.shape).toEqual([2, 3]);
  });

  it("keeps zeros, and takes an empty gradient", () => {
    expect(once([0, 0, 0, 0]).decoded.toNumbers()).toEqual([0, 0, 0, 0]);
    expect(once([]).decoded.toNumbers()).toEqual([]);
  });

  it("decodes payloads of several ranks to the sum of each", () => {
    const ranks = fc
      .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 4 }))
      .chain(([n, numRanks]) => fc.array(gradientOf(n), { minLength: numRanks, maxLength: numRanks }));
    fc.assert(
      fc.property(ranks, (gradients) => {
        const [both] = runWorld(
          (...own: Tensor[]) => {
            const payloads = own.map((g) => compressor.encode(g, compressor.init(g)).payload);
            const flat = payloads.map((payload) => flattenTree<Tensor>(payload));
            const join = (fn: (leaves: Tensor[]) => Tensor): unknown =>
              unflattenTree(
                flat[0]!.structure,
                flat[0]!.leaves.map((__, i) => fn(flat.map(({ leaves }) => leaves[i]!))),
              );
            const total = payloads.map((payload) => compressor.decode(payload, own[0]!)).reduce((sum, one) => add(sum, one));
            if (compressor.aggregation === "sum")
              return {
                total,
                joint: compressor.decode(
                  join((leaves) => leaves.reduce((sum, leaf) => add(sum, leaf))),
                  own[0]!,
                ),
              };
            const gathered = join((leaves) => concat(leaves));
            return { total, joint: compressor.decodeSum?.(gathered, own.length, own[0]!) ?? total };
          },
          [gradients.map((g) => NdArray.from(g))],
        );
        const { total, joint } = both!;
        const scale = Math.max(1, ...gradients.flat().map(Math.abs));
        total.toNumbers().forEach((v, i) => expect(Math.abs(v - joint.toNumbers()[i]!)).toBeLessThanOrEqual(1e-6 * scale));
      }),
    );
  });
});

describe("error feedback", () => {
  const wrapped = withErrorFeedback(topKCompressor({ density: 0.2 }));

  it("keeps exactly what it does not send: residual + sent = gradient + old residual, float by float", () => {
    const steps = fc.integer({ min: 1, max: 16 }).chain((n) => fc.array(gradientOf(n), { minLength: 1, maxLength: 4 }));
    fc.assert(
      fc.property(steps, (gradients) => {
        const [trail] = runWorld(
          (...own: Tensor[]) => {
            let state = wrapped.init(own[0]!);
            return own.map((g) => {
              const accumulated = add(g, state.residual);
              const { payload, state: next } = wrapped.encode(g, state);
              state = next;
              return { accumulated, sent: wrapped.decode(payload, g), residual: next.residual };
            });
          },
          [gradients.map((g) => NdArray.from(g))],
        );
        for (const { accumulated, sent, residual } of trail!) {
          accumulated.toNumbers().forEach((u, i) => {
            const [s, r] = [sent.toNumbers()[i]!, residual.toNumbers()[i]!];
            expect(s === 0 || r === 0).toBe(true); // nothing is sent in part
            expect(s + r).toBe(u + 0);
          });
        }
      }),
    );
  });

  it("sends everything in the end", () => {
    const [sums] = runWorld(
      (g: Tensor) => {
        let state = wrapped.init(g);
        let total: Tensor | undefined;
        for (let step = 0; step < 40; step++) {
          const { payload, state: next } = wrapped.encode(g, state);
          const sent = wrapped.decode(payload, g);
          total = total === undefined ? sent : add(total, sent);
          state = next;
        }
        return { total: total!, residual: state.residual };
      },
      [[NdArray.from([1, 2, 3, 4, 5])]],
    );
    sums!.total.toNumbers().forEach((sent, i) => expect(sent + sums!.residual.toNumbers()[i]!).toBe(40 * (i + 1)));
    expect(Math.min(...sums!.total.toNumbers())).toBeGreaterThan(0);
  });
});
