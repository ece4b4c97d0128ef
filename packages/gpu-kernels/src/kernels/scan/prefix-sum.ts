import type { Binding, BindingSource, Pass } from "../../kernel.ts";
import { workgroupScan } from "./workgroup-scan.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 256;

/** Number of 4-element vectors per invocation. */
const vectorsPerLane = 4;

/** Number of elements per workgroup. */
export const prefixSumBlock: number = lanes * vectorsPerLane * 4;

/** Plan of a prefix sum: the passes, and the size in bytes of each scratch block. */
export interface PrefixSum {
  readonly passes: readonly Pass[];
  readonly scratch: readonly number[];
}

const numbers = (name: string, source: BindingSource, access: Binding["access"]): Binding => ({
  name,
  type: "array<vec4<u32>>",
  source,
  access,
});

/** Sums each block: `sums[b]` is the sum of block b. */
const reducePass = (source: BindingSource, sums: BindingSource, blocks: number): Pass => ({
  label: "prefix sum: sums of blocks",
  bindings: [numbers("source", source, "read"), { name: "sums", type: "array<u32>", source: sums, access: "write" }],
  workgroupSize: lanes,
  groups: blocks,
  code: wgsl`
    var<workgroup> parts: array<u32, ${lanes}>;
    fn main(group: u32, lane: u32) {
      let first = group * ${lanes * vectorsPerLane}u + lane;
      var sum = vec4<u32>();
      for (var i = 0u; i < ${vectorsPerLane}u; i++) { sum += source[first + i * ${lanes}u]; }
      parts[lane] = sum.x + sum.y + sum.z + sum.w;
      for (var step = ${lanes / 2}u; step > 0u; step >>= 1u) {
        workgroupBarrier();
        if (lane < step) { parts[lane] += parts[lane + step]; }
      }
      if (lane == 0u) { sums[group] = parts[0]; }
    }
  `,
});

/**
 * Computes the prefix sums within each block. `before` holds the sum of all earlier blocks. Absent: sums start from 0.
 */
const scanPass = (
  source: BindingSource,
  target: BindingSource,
  before: BindingSource | undefined,
  count: number,
  blocks: number,
): Pass => ({
  label: `prefix sum: ${before === undefined ? "one block" : "blocks"}`,
  bindings: [
    numbers("source", source, "read"),
    ...(before === undefined ? [] : [{ name: "before", type: "array<u32>", source: before, access: "read" } as const]),
    numbers("result", target, "write"),
  ],
  workgroupSize: lanes,
  groups: blocks,
  sizes: { vectors: Math.ceil(count / 4) },
  code: wgsl`
    ${workgroupScan("u32", lanes, lanes)}
    fn main(group: u32, lane: u32) {
      let first = (group * ${lanes}u + lane) * ${vectorsPerLane}u;
      var v: array<vec4<u32>, ${vectorsPerLane}>;
      var own = 0u;
      for (var i = 0u; i < ${vectorsPerLane}u; i++) {
        v[i] = source[first + i];
        own += v[i].x + v[i].y + v[i].z + v[i].w;
      }
      var sum = ${before === undefined ? "" : "before[group] + "}scan(lane, own);
      for (var i = 0u; i < ${vectorsPerLane}u; i++) {
        let y = sum + v[i].x;
        let z = y + v[i].y;
        let w = z + v[i].z;
        if (first + i < sizes.vectors) { result[first + i] = vec4<u32>(sum, y, z, w); }
        sum = w + v[i].w;
      }
    }
  `,
});

/**
 * Returns the passes of the exclusive prefix sum of `count` u32 numbers, `target[i] = Σ source[j < i]` modulo 2³²:
 * reduce blocks of 4096, scan their sums recursively, then scan within blocks. The target may be the same memory as the
 * source.
 *
 * Memory after the last number may have any content, because it does not affect earlier sums. Cost: 2·count reads and
 * count writes; one pass up to 4096 numbers, three up to 2²⁴, five up to 2³⁶.
 *
 * @param firstScratch Index of the first returned scratch block in the kernel's plan.
 */
export const prefixSumPasses = (
  source: BindingSource,
  target: BindingSource,
  count: number,
  firstScratch = 0,
): PrefixSum => {
  const blocks = Math.ceil(count / prefixSumBlock);
  if (blocks <= 1) return { passes: [scanPass(source, target, undefined, count, 1)], scratch: [] };
  const sums: BindingSource = { scratch: firstScratch };
  const inner = prefixSumPasses(sums, sums, blocks, firstScratch + 1);
  return {
    passes: [reducePass(source, sums, blocks), ...inner.passes, scanPass(source, target, sums, count, blocks)],
    scratch: [4 * blocks, ...inner.scratch],
  };
};
