import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import { foldPasses } from "../reduce/fold-passes.ts";
import { type Fold, laneType, type Sink, type Source } from "../reduce/fold.ts";
import { ScratchBlocks } from "../scratch-blocks.ts";
import type { NormSize } from "./forward.ts";
import { mapColumnsPass } from "./map-columns.ts";
import { wgsl } from "../../wgsl.ts";

/** Fold that computes Σ g and Σ g·(x − mean) over a column. */
const gradientFold: Fold = {
  label: "batch-norm gradients",
  fields: [
    { name: "plain", type: "f32", start: "0.0" },
    { name: "scaled", type: "f32", start: "0.0" },
  ],
  join: () => ({ fields: ["a.plain + b.plain", "a.scaled + b.scaled"] }),
};

const [input, gamma, mean, variance, gradient] = [0, 1, 2, 3, 4].map((position) => ({ input: position })) as [
  { input: number },
  { input: number },
  { input: number },
  { input: number },
  { input: number },
];
const [dx, dGamma, dBeta] = [{ output: 0 }, { output: 1 }, { output: 2 }];

const gradientSource: Source = {
  bindings: (lanes, along) => [
    { name: "x", type: `array<${laneType("f32", lanes)}>`, source: input, access: "read" },
    { name: "g", type: `array<${laneType("f32", lanes)}>`, source: gradient, access: "read" },
    { name: "mean", type: `array<${laneType("f32", along ? 1 : lanes)}>`, source: mean, access: "read" },
  ],
  code: () =>
    "fn lift(at: u32, place: u32, column: u32) -> State { let v = g[at]; return State(v, v * (x[at] - mean[column])); }",
};

const gradientSink = (epsilon: number): Sink => ({
  bindings: (lanes) => [
    { name: "variance", type: `array<${laneType("f32", lanes)}>`, source: variance, access: "read" },
    { name: "d_gamma", type: `array<${laneType("f32", lanes)}>`, source: dGamma, access: "write" },
    { name: "d_beta", type: `array<${laneType("f32", lanes)}>`, source: dBeta, access: "write" },
  ],
  code: () =>
    `fn store(at: u32, s: Result) { d_gamma[at] = s.scaled * inverseSqrt(variance[at] + f32(${epsilon})); d_beta[at] = s.plain; }`,
});

/**
 * Computes `dβ = Σ g`, `dγ = Σ g·x̂`, then `dx = γ·rstd · (g − dβ/N − (x − mean) · rstd·dγ/N)`. Reads x and g twice,
 * writes dx once.
 */
export const batchNormBackwardPlan = ({ rows, width, epsilon }: NormSize, facts: DeviceFacts): KernelPlan => {
  const blocks = new ScratchBlocks();
  const step = { outer: 1, size: rows, inner: width };
  const passes = foldPasses(gradientFold, gradientSource, gradientSink(epsilon), [step], blocks, facts);
  if (rows > 0)
    passes.push(
      mapColumnsPass({
        label: "batch-norm dx",
        rows,
        width,
        reads: { x: input, gamma, mean, variance, g: gradient, d_gamma: dGamma, d_beta: dBeta },
        write: dx,
        perColumn: wgsl`
          let rstd = inverseSqrt(variance[column] + f32(${epsilon}));
          let scale = gamma[column] * rstd;
          let centre = mean[column];
          let slope = d_gamma[column] * rstd * f32(${1 / rows});
          let shift = d_beta[column] * f32(${1 / rows});
        `,
        value: "scale * (g[at] - shift - (x[at] - centre) * slope)",
      }),
    );
  return { scratch: blocks.bytes, passes };
};
