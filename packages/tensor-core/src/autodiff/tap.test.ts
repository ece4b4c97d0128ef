import { describe, expect, it, test } from "vitest";
import { evaluate, identity, jit, multiply, NdArray, referenceBackend, sum, tanh, trace } from "../index.ts";
import { full } from "../functions/elementwise.ts";
import { matmul } from "../functions/linear.ts";
import type { Tensor } from "../graph/tensor.ts";
import { optimize } from "../passes/optimize.ts";
import { tap } from "./tap.ts";
import { valueAndGrad, valueAndGradWithAux, vjp } from "./vjp.ts";

const matrix = { dtype: "f32" as const, shape: [3, 3] };
const run = async <T>(fn: (x: Tensor, w: Tensor) => T): Promise<number[][]> => {
  const x = NdArray.from([1, -2, 3, 0.5, 1, -1, 2, 0, 1], [3, 3]);
  const w = NdArray.from([0.5, 1, -1, 2, 0.25, 1, -0.5, 1, 2], [3, 3]);
  const results = await evaluate(fn as (a: Tensor, b: Tensor) => Tensor[], referenceBackend())(x, w);
  return (results as unknown as NdArray[]).map((one) => [...one.toNumbers()]);
};

const loss = (w: Tensor, x: Tensor): Tensor => {
  const hidden = tap("hidden", matmul(tap("input", x), w));
  return sum(multiply(tanh(hidden), tap("again", multiply(hidden, hidden))));
};

describe("tap", () => {
  it("returns values and cotangents by name, equal to a derivative with respect to the value", async () => {
    const [value, input, hidden, again, grads, ofX, ofHidden, ofAgain] = await run((x, w) => {
      const { value: v, grads: g, taps } = valueAndGrad(loss, { taps: true })(w, x);
      expect(Object.keys(taps)).toEqual(["input", "hidden", "again"]);
      const from = (h: Tensor, squared: Tensor): Tensor => sum(multiply(tanh(h), squared));
      const h = matmul(x, w);
      return [
        v,
        taps["input"]!.cotangent,
        taps["hidden"]!.cotangent,
        taps["again"]!.cotangent,
        g,
        valueAndGrad((own: Tensor) => loss(w, own))(x)[1],
        valueAndGrad((own: Tensor) => from(own, multiply(own, own)))(h)[1],
        valueAndGrad((own: Tensor) => from(h, own))(multiply(h, h))[1],
      ];
    });
    expect([input, hidden, again]).toEqual([ofX, ofHidden, ofAgain]);
    const [plainValue, plainGrads] = await run((x, w) => [...valueAndGrad(loss)(w, x)]);
    expect([value, grads]).toEqual([plainValue, plainGrads]);
  });

  it("adds nothing to a graph that does not use its taps", () => {
    const graphOf = (fn: (w: Tensor, x: Tensor) => unknown) =>
      optimize(trace(fn as never, [matrix, matrix] as never).graph);
    const plain = graphOf((w, x) => valueAndGrad((own: Tensor) => sum(tanh(matmul(x, own))))(w));
    const tapped = graphOf((w, x) => {
      const { value, grads } = valueAndGrad((own: Tensor) => sum(tap("t", tanh(tap("h", matmul(tap("x", x), own))))), {
        taps: true,
      })(w);
      return [value, grads];
    });
    expect(tapped.nodes).toEqual(plain.nodes);
    expect(trace((x: Tensor) => tap("nobody asks", x), [matrix] as never).graph.nodes).toHaveLength(1);
  });

  it("belongs to the innermost function that requests taps", async () => {
    const [inner, outer, direct] = await run((_, w) => {
      const within = (own: Tensor): Tensor => sum(tanh(tap("h", multiply(own, 3))));
      let got: Tensor | undefined;
      const { taps } = valueAndGrad(
        (own: Tensor) => {
          const { value, taps: ofInner } = valueAndGrad(within, { taps: true })(own);
          got = identity(ofInner["h"]!.cotangent);
          return sum(multiply(tap("outer", value), 2));
        },
        { taps: true },
      )(w);
      expect(Object.keys(taps)).toEqual(["outer"]);
      return [got!, taps["outer"]!.cotangent, valueAndGrad((h: Tensor) => sum(tanh(h)))(multiply(w, 3))[1]];
    });
    expect(inner).toEqual(direct);
    expect(outer).toEqual([2]);
  });

  it("returns further results and taps; zeros for integers and for values that the loss does not use", async () => {
    const [aux, unseen] = await run((x, w) => {
      const { aux: further, taps } = valueAndGradWithAux(
        (own: Tensor) => {
          tap("unseen", multiply(own, 5));
          return [sum(own), tap("aux", multiply(x, own))] as const;
        },
        { taps: true },
      )(w);
      expect(further.ref).toEqual(taps["aux"]!.value.ref);
      return [further, taps["unseen"]!.cotangent];
    });
    expect(aux).toHaveLength(9);
    expect(unseen).toEqual(Array.from({ length: 9 }, () => 0));
  });

  it("may be compiled and differentiated further", async () => {
    const curvature = jit((w: Tensor) => {
      const { value, pullback } = vjp(
        (own: Tensor) =>
          valueAndGrad((p: Tensor) => sum(multiply(tap("p", p), multiply(p, p))), { taps: true })(own).taps["p"]!
            .cotangent,
        w,
      );
      return pullback(full(value.shape, 1));
    }, referenceBackend());
    const w = NdArray.from([1, 2, -3]);
    const backend = referenceBackend();
    // The cotangent of the tapped factor is p², so the derivative is 2p.
    expect([...(await backend.download((await curvature(w)) as never)).toNumbers()]).toEqual([2, 4, -6]);
  });
});

test.each([
  ["a name that is taken", (x: Tensor) => tap("h", tap("h", x)), /"h" already names another value.*"block-0\/h"/],
  ["no name", (x: Tensor) => tap("", x), /its name is/],
  [
    "an unknown option",
    (x: Tensor) => valueAndGrad((own: Tensor) => sum(own), { tabs: true } as never)(x).value,
    /tabs.*taps/,
  ],
])("rejects %s", (_, fn, message) => {
  expect(() =>
    trace((x: Tensor) => valueAndGrad((own: Tensor) => sum(fn(own)), { taps: true })(x).value, [matrix] as never),
  ).toThrow(message);
});
