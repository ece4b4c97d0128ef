import type { BindingSource } from "../../kernel.ts";
import { type Fold, type Lanes, laneType, type Sink, type Source } from "../reduce/fold.ts";
import { unroll } from "../reduce/loop.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * State with count, mean and sum of squared deviations from the mean. Two states are combined without cancellation
 * (Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983): with n = n_a + n_b and d = mean_b −
 * mean_a, mean = mean_a + d·n_b/n and m₂ = m₂ₐ + m₂ᵦ + d²·n_a·n_b/n.
 */
export const momentsFold: Fold = {
  label: "moments",
  fields: [
    { name: "count", type: "f32", start: "0.0" },
    { name: "centre", type: "f32", start: "0.0" },
    { name: "spread", type: "f32", start: "0.0" },
  ],
  join: (lanes) => ({
    before: wgsl`
      let n = a.count + b.count;
      let share = b.count / max(n, ${laneType("f32", lanes)}(1.0));
      let d = b.centre - a.centre;
    `,
    // `d` is multiplied twice instead of squared, because zero times an overflowing square would be NaN.
    fields: ["n", "a.centre + d * share", "a.spread + b.spread + d * (d * (a.count * share))"],
  }),
};

const tree = (terms: readonly string[]): string =>
  terms.length === 1
    ? terms[0]!
    : `(${tree(terms.slice(0, terms.length / 2))} + ${tree(terms.slice(terms.length / 2))})`;

/**
 * Returns a fold source that reads each element as a `State` of count 1. If several elements are read at once, their
 * mean and squared deviations are computed in registers in two passes: the first computes the mean relative to the
 * first element, the second the squared deviations. A plain sum of values far from zero would lose precision.
 */
export const momentsSource = (source: BindingSource): Source => ({
  bindings: (lanes) => [{ name: "x", type: `array<${laneType("f32", lanes)}>`, source, access: "read" }],
  code: (lanes) => {
    const type = laneType("f32", lanes);
    return `fn lift(at: u32, place: u32, column: u32) -> State { return State(${type}(1.0), x[at], ${type}(0.0)); }`;
  },
  unrolled: (lanes: Lanes) => {
    const type = laneType("f32", lanes);
    const all = Array.from({ length: unroll }, (_, i) => i);
    return wgsl`
      fn lift_turn(at: u32, step: u32, place: u32, place_step: u32, column: u32) -> State {
        ${all.map((i) => `let v${i} = x[at + ${i}u * step];`)}
        let centre = v0 + ${tree(all.map((i) => `(v${i} - v0)`))} * ${1 / unroll};
        ${all.map((i) => `let d${i} = v${i} - centre;`)}
        return State(${type}(${unroll}.0), centre, ${tree(all.map((i) => `d${i} * d${i}`))});
      }
    `;
  },
});

/**
 * Returns a fold sink that writes the mean and the variance, which is the sum of squared deviations divided by the
 * number of rows.
 */
export const momentsSink = (mean: BindingSource, variance: BindingSource): Sink => ({
  bindings: (lanes) => [
    { name: "y_mean", type: `array<${laneType("f32", lanes)}>`, source: mean, access: "write" },
    { name: "y_variance", type: `array<${laneType("f32", lanes)}>`, source: variance, access: "write" },
  ],
  code: (lanes) =>
    `fn store(at: u32, s: Result) { y_mean[at] = s.centre; y_variance[at] = s.spread / max(s.count, ${laneType("f32", lanes)}(1.0)); }`,
});
