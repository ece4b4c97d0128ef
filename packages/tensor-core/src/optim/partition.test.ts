import { describe, expect, it } from "vitest";
import type { Tensor } from "../graph/tensor.ts";
import { jit } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { momentum, sgd } from "./optimizers.ts";
import { partition } from "./partition.ts";
import { chain, type GradientTransformation, stateless } from "./transformation.ts";

type Params = { readonly b: Tensor; readonly inner: { readonly w: Tensor } };

const arrays = { b: NdArray.from([1, 2]), inner: { w: NdArray.from([[3, 4]]) } } as unknown as Params;

/** Returns the updates of two steps whose gradients equal the parameters. */
const twice = async <State>(optimizer: GradientTransformation<State>): Promise<number[][]> => {
  const run = jit((params: Params) => {
    const [first, state] = optimizer.update(params, optimizer.init(params), { params });
    return [first, optimizer.update(params, state, { params })[0]];
  }, referenceBackend());
  const backend = referenceBackend();
  const steps = (await run(arrays as never)) as unknown as Params[];
  return Promise.all(
    steps
      .flatMap(({ b, inner }) => [b, inner.w])
      .map(async (leaf) => (await backend.download(leaf as never)).toNumbers()),
  );
};

describe("partition", () => {
  it("gives each parameter the transformation of its label, with a state of its own", async () => {
    const optimizer = partition((path) => (path === "inner.w" ? "matrices" : "vectors"), {
      matrices: momentum({ learningRate: 1, decay: 0.5 }),
      vectors: sgd({ learningRate: 0.5 }),
    });
    expect(await twice(optimizer)).toEqual([
      [-0.5, -1],
      [-3, -4],
      [-0.5, -1],
      [-4.5, -6],
    ]);
  });

  it("passes statistics to the parts that observe them", () => {
    const seen: unknown[] = [];
    const observer: GradientTransformation<unknown> = {
      ...stateless((updates) => updates),
      observe: (state: unknown, statistics: unknown, options: unknown) => {
        seen.push(statistics, options);
        return state;
      },
    } as never;
    const split = partition(() => "a", { a: observer, b: sgd({ learningRate: 1 }) });
    const statistics = {};
    split.observe!({ a: {}, b: [] } as never, statistics, { refresh: false });
    expect(seen).toEqual([statistics, { refresh: false }]);
    expect(partition(() => "b", { b: sgd({ learningRate: 1 }) }).observe).toBeUndefined();
    expect(chain(sgd({ learningRate: 1 })).observe).toBeUndefined();
  });

  it("rejects invalid arguments, with the correct call", async () => {
    const part = sgd({ learningRate: 1 });
    expect(() => partition("w" as never, { part })).toThrow(
      /its label is "w", but it must be a function; write partition\(/,
    );
    expect(() => partition(() => "part", null as never)).toThrow(/its parts are null/);
    expect(() => partition(() => "part", { part: 3 as never })).toThrow(/its part part is the number 3/);
    await expect(twice(partition(() => "other", { part }))).rejects.toThrow(
      /the label of b is "other".*the parts are part/,
    );
  });
});
