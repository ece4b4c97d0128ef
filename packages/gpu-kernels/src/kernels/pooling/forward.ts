import type { DeviceFacts, Pass } from "../../kernel.ts";
import type { PoolingGeometry } from "./geometry.ts";
import { beatsFunction, lanesOf, coordinatesFunction, vectorIndex, windowBounds } from "./pooling-wgsl.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;

/** Operation that pooling applies to each window. */
export type Pooled = "maximum" | "mean of pixels" | "mean of window";

/** Returns the number of invocations per window. More than 1 if there are few, large windows. */
const sharersOf = ({ window }: PoolingGeometry, outputs: number, facts: DeviceFacts): number => {
  if (facts.software || outputs >= 2 ** 15) return 1;
  const pixels = window[0] * window[1];
  return pixels >= 1024 ? 16 : pixels >= 64 ? 4 : 1;
};

/**
 * Computes the maximum or mean of each window, channel by channel: `y[n, i, j, c] = max (mean) of x[n, i·s − p + r, …,
 * c]` over the window's pixels in the image.
 *
 * One operation per pixel of each window; bound by memory. For few large windows (such as a global mean), several
 * invocations share each window, interleaved by pixel.
 */
export const poolPass = (geometry: PoolingGeometry, pooled: Pooled, facts: DeviceFacts): Pass => {
  const { batch, image, channels, positions, window } = geometry;
  const lanes = lanesOf(channels);
  const { float } = lanes;
  const count = batch * positions[0] * positions[1] * lanes.perPixel;
  const sharers = sharersOf(geometry, count, facts);
  const across = workgroupSize / sharers;
  const maximum = pooled === "maximum";
  const take = (value: string): string =>
    maximum ? `best = select(best, ${value}, beats(${value}, best));` : `best += ${value};`;
  const divisor =
    pooled === "mean of window" ? `${window[0] * window[1]}.0` : "f32((end_y - first_y) * (end_x - first_x))";
  const index = (y: string, x: string): string => vectorIndex("place.x", y, x, "place.w", image, lanes);
  // The accumulator for a maximum starts with the first pixel of the window, the accumulator for a mean with zero.
  const code = wgsl`
    ${coordinatesFunction("place_of", positions[0], positions[1], lanes)}
    ${maximum ? beatsFunction(lanes) : ""}
    ${sharers > 1 ? `var<workgroup> shares: array<${float}, ${workgroupSize}>;` : ""}
    fn main(group: u32, lane: u32) {
      let at = group * ${across}u + lane % ${across}u;
      let sharer = lane / ${across}u;
      let place = place_of(min(at, sizes.count - 1u));
      ${windowBounds(geometry, "place.y", "place.z")}
      var best = ${maximum ? `x[${index("min(first_y, end_y - 1u)", "first_x")}]` : `${float}()`};
      ${
        sharers > 1
          ? wgsl`
            let width = max(end_x, first_x + 1u) - first_x;
            for (var pixel = sharer; pixel < (end_y - first_y) * (end_x - first_x); pixel += ${sharers}u) {
              let value = x[${index("first_y + pixel / width", "first_x + pixel % width")}];
              ${take("value")}
            }
            shares[lane] = best;
            workgroupBarrier();
            if (sharer > 0u) { return; }
            for (var other = lane + ${across}u; other < ${workgroupSize}u; other += ${across}u) { let value = shares[other]; ${take("value")} }
          `
          : wgsl`
            for (var row = first_y; row < end_y; row++) {
              for (var column = first_x; column < end_x; column++) {
                let value = x[${index("row", "column")}];
                ${take("value")}
              }
            }
          `
      }
      if (at < sizes.count) { y[at] = ${maximum ? "best" : `best / ${divisor}`}; }
    }
  `;
  return {
    label: `pool ${pooled}, ${sharers} sharing`,
    bindings: [
      { name: "x", type: `array<${float}>`, source: { input: 0 }, access: "read" },
      { name: "y", type: `array<${float}>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil(count / across),
    code,
    sizes: { count },
  };
};
