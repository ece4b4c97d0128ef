import type { Binding, BindingSource, Pass } from "../../kernel.ts";
import { prefixSumPasses } from "../scan/prefix-sum.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 256;

/**
 * Maximum size in bits of a digit in the radix sort. For each digit value, a workgroup keeps a set of 256 bits, 8 KiB
 * in total.
 */
const maxDigitBits = 8;

/**
 * Passes of a stable sort, and the size in bytes of each scratch block. The passes write the positions, in sorted
 * order, to the scratch block `order`.
 */
export interface StableOrder {
  readonly passes: readonly Pass[];
  readonly scratch: readonly number[];
  readonly order: BindingSource;
}

interface Digit {
  readonly shift: number;
  readonly bits: number;
}

const digitsOf = (largestKey: number): Digit[] => {
  const bits = Math.max(1, 32 - Math.clz32(largestKey));
  const count = Math.ceil(bits / maxDigitBits);
  const each = Math.ceil(bits / count);
  return Array.from({ length: count }, (_, i) => ({ shift: i * each, bits: each }));
};

/**
 * Returns WGSL of `fn item_of(group, lane)`, which returns the position and digit of a lane. For each digit value, the
 * function also stores the set of lanes with this digit, as 256 bits in `peers`.
 */
const peers = ({ bits }: Digit, ordered: boolean): string => wgsl`
  const lanes_words = ${lanes / 32}u;
  var<workgroup> peers: array<atomic<u32>, ${2 ** bits * (lanes / 32)}>;
  struct Item { position: u32, digit: u32 }
  fn item_of(group: u32, lane: u32) -> Item {
    for (var i = lane; i < ${2 ** bits * (lanes / 32)}u; i += ${lanes}u) { atomicStore(&peers[i], 0u); }
    workgroupBarrier();
    let at = group * ${lanes}u + lane;
    var item = Item(at, 0u);
    if (at < sizes.count) {
      ${ordered ? "item.position = order[at];" : ""}
      item.digit = (min(indices[item.position], sizes.rows) >> sizes.shift) & ${2 ** bits - 1}u;
      atomicOr(&peers[item.digit * lanes_words + lane / 32u], 1u << (lane % 32u));
    }
    workgroupBarrier();
    return item;
  }
`;

/** Properties that the count pass and the placement pass of a digit have in common. */
type DigitPass = Pick<Pass, "bindings" | "groups" | "code"> & { readonly sizes: { readonly [name: string]: number } };

/** Counts digits: `counts[digit, group]` is the number of lanes of the workgroup with this digit. */
const countPass = ({ bindings, groups, code, sizes }: DigitPass, digit: Digit, counts: BindingSource): Pass => ({
  label: "stable order: count digits",
  bindings: [...bindings, { name: "counts", type: "array<u32>", source: counts, access: "write" }],
  workgroupSize: lanes,
  groups,
  sizes,
  code: wgsl`
    ${code}
    fn main(group: u32, lane: u32) {
      _ = item_of(group, lane);
      if (lane < ${2 ** digit.bits}u) {
        var sum = 0u;
        for (var word = 0u; word < lanes_words; word++) { sum += countOneBits(atomicLoad(&peers[lane * lanes_words + word])); }
        counts[lane * sizes.groups + group] = sum;
      }
    }
  `,
});

/**
 * Moves each position to its place in the order of digits: after all positions with a lower digit, and after earlier
 * positions with the same digit.
 */
const placePass = (
  { bindings, groups, code, sizes }: DigitPass,
  starts: BindingSource,
  target: BindingSource,
): Pass => ({
  label: "stable order: place by digit",
  bindings: [
    ...bindings,
    { name: "starts", type: "array<u32>", source: starts, access: "read" },
    { name: "placed", type: "array<u32>", source: target, access: "write" },
  ],
  workgroupSize: lanes,
  groups,
  sizes,
  code: wgsl`
    ${code}
    fn main(group: u32, lane: u32) {
      let item = item_of(group, lane);
      if (group * ${lanes}u + lane >= sizes.count) { return; }
      let members = item.digit * lanes_words;
      var rank = countOneBits(atomicLoad(&peers[members + lane / 32u]) & ((1u << (lane % 32u)) - 1u));
      for (var word = 0u; word < lane / 32u; word++) { rank += countOneBits(atomicLoad(&peers[members + word])); }
      placed[starts[item.digit * sizes.groups + group] + rank] = item.position;
    }
  `,
});

/**
 * Sorts positions 0 … count−1 in ascending order of their index, stable for equal indices; indices outside 0 ≤ index <
 * size come last. Radix sort from the lowest digit of up to 8 bits (Satish, Harris and Garland, Designing Efficient
 * Sorting Algorithms for Manycore GPUs, 2009). Ranks within a workgroup are computed from bit sets, so that the result
 * does not depend on the execution order of lanes. Cost per digit: 12·count bytes read and 4·count written, and the
 * prefix sum of one number per digit value and 256 positions.
 *
 * @param firstScratch Index of the first returned scratch block in the kernel's plan.
 */
export const stableOrderPasses = (
  indices: BindingSource,
  count: number,
  size: number,
  firstScratch: number,
): StableOrder => {
  const digits = digitsOf(size);
  const groups = Math.ceil(count / lanes);
  const [counts, ...orders] = [0, 1, 2].map((i): BindingSource => ({ scratch: firstScratch + i }));
  const numCounts = groups * 2 ** digits[0]!.bits;
  const prefix = prefixSumPasses(counts!, counts!, numCounts, firstScratch + 3);
  const passes = digits.flatMap((digit, i): Pass[] => {
    const bindings: Binding[] = [{ name: "indices", type: "array<u32>", source: indices, access: "read" }];
    if (i > 0) bindings.push({ name: "order", type: "array<u32>", source: orders[(i - 1) % 2]!, access: "read" });
    const sizes = { count, rows: size, groups, shift: digit.shift };
    const common: DigitPass = { bindings, groups, sizes, code: peers(digit, i > 0) };
    return [countPass(common, digit, counts!), ...prefix.passes, placePass(common, counts!, orders[i % 2]!)];
  });
  return {
    passes,
    scratch: [4 * numCounts, 4 * count, 4 * count, ...prefix.scratch],
    order: orders[(digits.length - 1) % 2]!,
  };
};
