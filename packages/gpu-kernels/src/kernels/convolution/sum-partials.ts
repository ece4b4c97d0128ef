import type { BindingSource, Pass } from "../../kernel.ts";
import type { Stored } from "./gather-wgsl.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;

export interface PartialsOptions {
  /** Number of partial results, stored consecutively. */
  readonly count: number;
  /** Number of elements per partial result, a multiple of 4. */
  readonly length: number;
  readonly result: Stored;
  readonly target?: BindingSource;
}

/**
 * Computes `result[i] = Σ_s partial[s, i]` in a fixed order. This is the second pass of sums that are split between
 * workgroups.
 *
 * Bytes: (count + 1) · length words. If there are few results and many parts, several invocations share a result.
 */
export const sumPartialsPass = ({ count, length, result, target = { output: 0 } }: PartialsOptions): Pass => {
  const sharers = count >= 64 ? 16 : count >= 12 ? 4 : 1;
  const across = workgroupSize / sharers;
  const code = wgsl`
    ${sharers > 1 ? `var<workgroup> shares: array<vec4<f32>, ${workgroupSize}>;` : ""}
    fn main(group: u32, lane: u32) {
      let at = group * ${across}u + lane % ${across}u;
      var sum = vec4<f32>();
      if (at < sizes.vectors) {
        for (var s = lane / ${across}u; s < sizes.count; s += ${sharers}u) { sum += partials[s * sizes.vectors + at]; }
      }
      ${
        sharers > 1
          ? wgsl`
            shares[lane] = sum;
            workgroupBarrier();
            if (lane >= ${across}u) { return; }
            for (var other = lane + ${across}u; other < ${workgroupSize}u; other += ${across}u) { sum += shares[other]; }
          `
          : ""
      }
      if (at < sizes.vectors) { result[at] = vec4<${result}>(sum); }
    }
  `;
  return {
    label: `sum of partial results, ${sharers} sharing`,
    bindings: [
      { name: "partials", type: "array<vec4<f32>>", source: { scratch: 0 }, access: "read" },
      { name: "result", type: `array<vec4<${result}>>`, source: target, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil(length / 4 / across),
    code,
    ...(result === "f16" ? { features: ["f16"] as const } : {}),
    sizes: { vectors: length / 4, count },
  };
};
