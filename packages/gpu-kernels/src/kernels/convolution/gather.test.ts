import type { OperatorParams } from "@skein/tensor-core/backend";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Axis, backwardGather, forwardGather } from "./gather.ts";
import { geometryOf } from "./geometry.ts";

const pair = (max: number, min = 1): fc.Arbitrary<[number, number]> =>
  fc.tuple(fc.integer({ min, max }), fc.integer({ min, max }));

const geometries = fc
  .record({
    image: pair(9),
    kernel: pair(4),
    stride: pair(6),
    dilation: pair(4),
    before: pair(4, 0),
    after: pair(4, 0),
  })
  .map(({ image, kernel, stride, dilation, before, after }) => {
    const along = (dim: 0 | 1): number =>
      Math.floor((image[dim] + before[dim] + after[dim] - (kernel[dim] - 1) * dilation[dim] - 1) / stride[dim]) + 1;
    const padding: OperatorParams["conv2d"]["padding"] = [
      [before[0], after[0]],
      [before[1], after[1]],
    ];
    return {
      x: [1, ...image, 1],
      w: [...kernel, 1, 1],
      y: [1, along(0), along(1), 1],
      params: { stride, dilation, padding, groups: 1 } satisfies OperatorParams["conv2d"],
    };
  })
  .filter(({ y }) => y[1]! > 0 && y[2]! > 0);

/** Returns every product of one dimension as `source, kernel index, target`. */
const productsOf = (axis: Axis): string[] =>
  axis.phases
    .flatMap(({ first, taps, offset }, phase) =>
      Array.from({ length: axis.positions }, (_, i) => i).flatMap((i) =>
        Array.from({ length: taps }, (_, t) => ({
          source: i * axis.stride + offset + t * axis.dilation,
          index: first + t * axis.step,
          target: phase + axis.phases.length * i,
        })),
      ),
    )
    .filter(({ source, target }) => source >= 0 && source < axis.source && target < axis.target)
    .map(({ source, index, target }) => `${source} ${index} ${target}`);

test("a convolution and its image gradient visit the same products, each once", () => {
  fc.assert(
    fc.property(geometries, ({ x, w, y, params }) => {
      const geometry = geometryOf(x, w, y, params);
      const [forward, backward] = [forwardGather(geometry), backwardGather(geometry)];
      for (const name of ["vertical", "horizontal"] as const) {
        const swapped = productsOf(backward[name]).map((product) => product.split(" ").reverse().join(" "));
        expect(swapped.sort()).toEqual(productsOf(forward[name]).sort());
        expect(new Set(swapped).size).toBe(swapped.length);
        expect(backward[name].phases.length * backward[name].positions).toBeGreaterThanOrEqual(backward[name].target);
      }
    }),
    { numRuns: 300 },
  );
});
