import type { Pass } from "../../kernel.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { workgroupSize } from "../reduce/fold.ts";
import { keyFunction } from "../reduce/order-keys.ts";
import { elementsBinding, type Selection, winText } from "./selection.ts";
import { wgsl } from "../../wgsl.ts";

/** Maximum row length for which elements are ranked one by one. */
export const maxRankedSize: number = workgroupSize;

/**
 * Selects the largest elements of short rows, such as the gates in a mixture of experts. One invocation per element
 * computes the element's rank, the number of elements that precede it. Cost for any k: size² comparisons per row, one
 * barrier if sorted and two otherwise.
 */
export const byRankPass = ({ rows, size, k, by }: Selection, sorted: boolean): Pass => {
  const perRow = powerOfTwoAbove(size);
  const win = winText(undefined);
  return {
    label: `top-k by rank, ${perRow} invocations each`,
    bindings: [elementsBinding(), ...win.bindings],
    workgroupSize,
    groups: Math.ceil((rows * perRow) / workgroupSize),
    code: wgsl`
      ${keyFunction(by, false, 1)}
      ${win.code}
      var<workgroup> keys: array<u32, ${workgroupSize}>;
      ${sorted ? "" : `var<workgroup> chosen: array<u32, ${workgroupSize}>;`}
      fn main(group: u32, lane: u32) {
        let place = lane % ${perRow}u;
        let first = lane - place;
        let row = group * ${workgroupSize / perRow}u + lane / ${perRow}u;
        let live = place < ${size}u && row < sizes.rows;
        var bits = 0u;
        if (live) { bits = x[row * ${size}u + place]; }
        let key = key_of(bits);
        keys[lane] = key;
        workgroupBarrier();
        var rank = 0u;
        for (var other = 0u; other < ${size}u; other++) {
          let rival = keys[first + other];
          rank += select(0u, 1u, (rival > key) | ((rival == key) & (other < place)));
        }
        ${
          sorted
            ? `if (live && rank < sizes.k) { win(row * sizes.k + rank, bits, key, place); }`
            : wgsl`
              chosen[lane] = select(0u, 1u, rank < sizes.k);
              workgroupBarrier();
              if (live && rank < sizes.k) {
                var at = 0u;
                for (var other = 0u; other < place; other++) { at += chosen[first + other]; }
                win(row * sizes.k + at, bits, key, place);
              }
            `
        }
      }
    `,
    sizes: { rows, k },
  };
};
