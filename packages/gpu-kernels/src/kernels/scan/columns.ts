import type { ReductionStep } from "@skein/tensor-core/backend";
import type { BindingSource, DeviceFacts, Pass } from "../../kernel.ts";
import { type Lanes, laneType, workgroupSize } from "../reduce/fold.ts";
import { workgroupsWanted } from "../reduce/rows.ts";
import type { SumType } from "../reduce/sum.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Sizes and options of running sums along the middle dimension of a dense [outer, size, inner] tensor with inner > 1.
 */
export interface ColumnScan extends ReductionStep {
  readonly type: SumType;
  readonly reverse: boolean;
}

/**
 * Division of each column into `segments` segments of `length` elements. The last segment may be shorter. Each
 * invocation sums one segment for the adjacent columns of one register.
 */
interface Segments {
  readonly lanes: Lanes;
  readonly length: number;
  readonly segments: number;
}

/**
 * Minimum and maximum segment length in elements. The maximum bounds the rounding error of sums within an invocation,
 * the minimum bounds the number of passes for small tensors.
 */
const [minLength, maxLength] = [32, 512];

const segmentsOf = ({ type, outer, size, inner }: ColumnScan, facts: DeviceFacts): Segments => {
  const lanes = inner % 4 === 0 ? 4 : 1;
  const wanted = (workgroupsWanted(facts) * workgroupSize) / 4;
  // Float sums have a fixed order, whatever the size of `outer`. Integer sums are bitwise identical in any order.
  const lines = type === "u32" ? outer : 1;
  const length = Math.min(maxLength, Math.max(minLength, Math.floor((size * lines * inner) / lanes / wanted)));
  return { lanes, length, segments: Math.ceil(size / length) };
};

/** Computes sums over segments. If `target` is `sums`, only the total of each segment is written. */
const segmentPass = (
  { type, outer, size, inner, reverse }: ColumnScan,
  { lanes, length, segments }: Segments,
  from: BindingSource,
  to: BindingSource,
  target: "sums" | "result",
  before?: BindingSource,
): Pass => {
  const vector = laneType(type, lanes);
  const registers = inner / lanes;
  const count = outer * segments * registers;
  const row = (offset: number): string => (reverse ? `sizes.size - 1u - (i + ${offset}u)` : `i + ${offset}u`);
  const load = (offset: number): string => `x[base + (${row(offset)}) * sizes.registers]`;
  const store = (offset: number, value: string): string =>
    target === "sums" ? "" : `y[base + (${row(offset)}) * sizes.registers] = ${value};`;
  return {
    label: `cumsum columns, ${target === "sums" ? "sums of segments" : `${segments} segments`}`,
    bindings: [
      { name: "x", type: `array<${vector}>`, source: from, access: "read" },
      ...(before === undefined
        ? []
        : [{ name: "before", type: `array<${vector}>`, source: before, access: "read" } as const]),
      { name: "y", type: `array<${vector}>`, source: to, access: "write" },
    ],
    workgroupSize,
    groups: Math.ceil(count / workgroupSize),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${workgroupSize}u + lane;
        if (at >= ${count}u) { return; }
        let column = at % sizes.registers;
        let segment = (at / sizes.registers) % ${segments}u;
        let base = at / (sizes.registers * ${segments}u) * sizes.size * sizes.registers + column;
        let end = min((segment + 1u) * ${length}u, sizes.size);
        var sum = ${vector}();
        ${before === undefined ? "" : "if (segment > 0u) { sum = before[at - sizes.registers]; }"}
        var i = segment * ${length}u;
        for (; i + 4u <= end; i += 4u) {
          let a = ${load(0)};
          let b = a + ${load(1)};
          let third = ${load(2)};
          let c = b + third;
          let d = b + (third + ${load(3)});
          ${[store(0, "sum + a"), store(1, "sum + b"), store(2, "sum + c"), store(3, "sum + d")]}
          sum += d;
        }
        for (; i < end; i++) {
          sum += ${load(0)};
          ${store(0, "sum")}
        }
        ${target === "sums" ? "y[at] = sum;" : ""}
      }
    `,
    sizes: { size, registers },
  };
};

/**
 * Returns the passes that compute the running sums of columns. Short columns need one pass. Longer columns are divided
 * into segments: the passes compute the sums of segments, the running sums of these sums (recursively), and the running
 * sums within segments.
 */
export const columnScanPasses = (
  scan: ColumnScan,
  from: BindingSource,
  to: BindingSource,
  blocks: ScratchBlocks,
  facts: DeviceFacts,
): Pass[] => {
  const { outer, inner } = scan;
  const cut = segmentsOf(scan, facts);
  if (cut.segments === 1) return [segmentPass(scan, cut, from, to, "result")];
  const words = outer * cut.segments * inner;
  const [sums, before] = [blocks.take(words), blocks.take(words)];
  return [
    segmentPass(scan, cut, from, sums, "sums"),
    ...columnScanPasses({ ...scan, size: cut.segments, reverse: false }, sums, before, blocks, facts),
    segmentPass(scan, cut, from, to, "result", before),
  ];
};
