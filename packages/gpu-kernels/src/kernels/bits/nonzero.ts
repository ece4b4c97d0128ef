import type { Binding, BindingSource, Pass } from "../../kernel.ts";
import { prefixSumPasses } from "../scan/prefix-sum.ts";
import { workgroupScan } from "../scan/workgroup-scan.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 256;

/** Number of vectors of sixteen elements per invocation. The vectors share one scan over invocations. */
const registers = 4;

const tileVectors = lanes * registers;

/** Number of elements per workgroup. */
export const nonzeroTile: number = 16 * tileVectors;

/**
 * A rule that selects elements, with WGSL that finds the selected elements, and WGSL that writes data of each selected
 * element.
 */
export interface ElementSelection {
  readonly label: string;
  readonly bindings: readonly Binding[];
  /**
   * WGSL of `fn held_at(v: u32) -> vec4<u32>`: one byte for each of the sixteen elements from 16v on, 1 if the element
   * is selected and 0 if not. Elements after the end give 0. May use `sizes.last`, `sizes.count` and `sizes.capacity`.
   */
  readonly code: string;
  /**
   * WGSL that writes additional data of element `from` to slot `at`, in addition to the element's index. `clear`: WGSL
   * that zeroes the unused slot `at`.
   */
  readonly put: { readonly bindings: readonly Binding[]; readonly code: string; readonly clear: string };
  readonly indices: BindingSource;
  readonly found: BindingSource;
  /** Whether the count includes selected elements beyond the capacity. */
  readonly countsAll: boolean;
  /** Value of `sizes.last`: index of the last vector of the operand. */
  readonly last: number;
}

/** WGSL that reads the bytes of vector v of a mask. */
const maskCode = wgsl`
  fn held_at(v: u32) -> vec4<u32> {
    let bytes = mask[min(v, sizes.last)];
    if (v < sizes.last) { return bytes; }
    let first = 16u * v + vec4<u32>(0u, 4u, 8u, 12u);
    let left = select(vec4<u32>(), vec4<u32>(sizes.count) - first, vec4<u32>(sizes.count) > first);
    let part = (vec4<u32>(1u) << (8u * min(left, vec4<u32>(3u)))) - 1u;
    return bytes & select(part, vec4<u32>(0xffffffffu), left >= vec4<u32>(4u));
  }
`;

const countText = wgsl`
  fn count_of(held: vec4<u32>) -> u32 {
    let c = countOneBits(held);
    return (c.x + c.y) + (c.z + c.w);
  }
`;

const each = (line: (j: number) => string): string[] => Array.from({ length: registers }, (_, j) => line(j));

const countPass = (
  selection: ElementSelection,
  tiles: number,
  counts: BindingSource,
  sizes: Pass["sizes"] & object,
): Pass => {
  const steps: string[] = [];
  for (let step = lanes / 2; step >= 1; step /= 2)
    steps.push(wgsl`
      workgroupBarrier();
      if (lane < ${step}u) { sum += sums[lane + ${step}u]; sums[lane] = sum; }
    `);
  return {
    label: `${selection.label}, count tiles`,
    bindings: [...selection.bindings, { name: "counts", type: "array<u32>", source: counts, access: "write" }],
    workgroupSize: lanes,
    groups: tiles,
    sizes,
    code: wgsl`
      ${selection.code}
      ${countText}
      var<workgroup> sums: array<u32, ${lanes}>;
      fn main(group: u32, lane: u32) {
        let v = group * ${tileVectors}u + lane;
        var sum = ${each((j) => `count_of(held_at(v + ${j * lanes}u))`).join(" + ")};
        sums[lane] = sum;
        ${steps}
        if (lane == 0u) { counts[group] = sum; }
      }
    `,
  };
};

/** Writes the positions of each tile after the positions of earlier tiles. The last tile writes the total count. */
const placePass = (
  selection: ElementSelection,
  tiles: number,
  before: BindingSource | undefined,
  sizes: Pass["sizes"] & object,
): Pass => ({
  label: `${selection.label}, ${before === undefined ? "one tile" : "place tiles"}`,
  bindings: [
    ...selection.bindings,
    ...(before === undefined ? [] : [{ name: "before", type: "array<u32>", source: before, access: "read" } as const]),
    { name: "indices", type: "array<u32>", source: selection.indices, access: "write" },
    { name: "found", type: "array<u32>", source: selection.found, access: "write" },
    ...selection.put.bindings,
  ],
  workgroupSize: lanes,
  groups: tiles,
  sizes,
  code: wgsl`
    ${selection.code}
    ${countText}
    ${workgroupScan("vec4<u32>", lanes, lanes)}
    fn put(held: vec4<u32>, v: u32, start: u32) {
      var at = start;
      for (var c = 0u; c < 4u; c++) {
        var bytes = held[c];
        while (bytes != 0u && at < sizes.capacity) {
          let own = 16u * v + 4u * c + (countTrailingZeros(bytes) >> 3u);
          indices[at] = own;
          ${selection.put.code}
          bytes &= bytes - 1u;
          at++;
        }
      }
    }
    fn main(group: u32, lane: u32) {
      let v = group * ${tileVectors}u + lane;
      ${each((j) => `let h${j} = held_at(v + ${j * lanes}u);`)}
      let ahead = scan(lane, vec4<u32>(${each((j) => `count_of(h${j})`).join(", ")}));
      let all = scan_total(lane);
      var carry = ${before === undefined ? "0u" : "before[group]"};
      ${each(
        (j) => wgsl`
          put(h${j}, v + ${j * lanes}u, carry + ahead.${"xyzw"[j]!});
          carry += all.${"xyzw"[j]!};
        `,
      )}
      if (group == ${tiles - 1}u && lane == 0u) { found[0] = ${selection.countsAll ? "carry" : "min(carry, sizes.capacity)"}; }
    }
  `,
});

const fillPass = (selection: ElementSelection, capacity: number): Pass => ({
  label: `${selection.label}, fill`,
  bindings: [
    { name: "found", type: "array<u32>", source: selection.found, access: "read" },
    { name: "indices", type: "array<u32>", source: selection.indices, access: "write" },
    ...selection.put.bindings,
  ],
  workgroupSize: lanes,
  groups: Math.ceil(capacity / lanes),
  sizes: { capacity },
  code: wgsl`
    fn main(group: u32, lane: u32) {
      let at = group * ${lanes}u + lane;
      if (at >= found[0] && at < sizes.capacity) { indices[at] = 0u;${selection.put.clear} }
    }
  `,
});

/**
 * Writes the first `capacity` selected elements out of `count` elements. Counts the selected elements in each tile of
 * 16384, sums the counts of earlier tiles, then writes each tile's elements in order, with a scan within each
 * workgroup. Results do not depend on the execution order of invocations.
 *
 * Bytes: the selection data is read twice (once if it fits in one tile), the output is written once.
 */
export const placementPasses = (
  selection: ElementSelection,
  count: number,
  capacity: number,
  blocks: ScratchBlocks,
): readonly Pass[] => {
  const tiles = Math.max(1, Math.ceil(count / nonzeroTile));
  const sizes = { count, last: selection.last, capacity };
  if (tiles === 1) return [placePass(selection, 1, undefined, sizes), fillPass(selection, capacity)];
  const counts = blocks.take(tiles);
  const prefix = prefixSumPasses(counts, counts, tiles, blocks.bytes.length);
  for (const bytes of prefix.scratch) blocks.take(bytes / 4);
  return [
    countPass(selection, tiles, counts, sizes),
    ...prefix.passes,
    placePass(selection, tiles, counts, sizes),
    fillPass(selection, capacity),
  ];
};

/**
 * Writes the positions of the first `capacity` of `count` true bools, followed by 0. Bytes: the mask is read twice
 * (once if it fits in one tile), 4·capacity bytes are written.
 */
export const nonzeroPasses = (count: number, capacity: number, blocks: ScratchBlocks): readonly Pass[] => {
  const selection: ElementSelection = {
    label: "nonzero",
    bindings: [{ name: "mask", type: "array<vec4<u32>>", source: { input: 0 }, access: "read" }],
    code: maskCode,
    put: { bindings: [], code: "", clear: "" },
    indices: { output: 0 },
    found: { output: 1 },
    countsAll: false,
    last: Math.max(1, Math.ceil(count / 16)) - 1,
  };
  return placementPasses(selection, count, capacity, blocks);
};
