import type { Pass } from "../../kernel.ts";
import { workgroupSize } from "../reduce/fold.ts";
import { keyFunction } from "../reduce/order-keys.ts";
import { workgroupScan } from "../scan/workgroup-scan.ts";
import { elementsBinding, type Selection, type Winners, winText } from "./selection.ts";
import { wgsl } from "../../wgsl.ts";

/** Number of elements that one invocation compacts at a time. */
const each = 4;

/**
 * Selects the largest elements with one workgroup per row. The workgroup finds the k-th largest key, byte by byte from
 * the top. For each byte, the workgroup counts the keys that have the bytes picked so far by the value of their next
 * byte, and picks the value at which the count from above reaches k. Then the workgroup writes the keys above the
 * threshold, and the first equal keys, in order of position. Reads each row five times; all reads except the first come
 * from caches.
 */
export const rowSelectPass = ({ rows, size, k, by }: Selection, to: Winners | undefined): Pass => {
  const win = winText(to);
  const sharesBytes = (shift: number): string =>
    shift === 24 ? "" : `if ((key >> ${shift + 8}u) == (threshold >> ${shift + 8}u)) `;
  const round = (shift: number): string => wgsl`
    atomicStore(&bins[lane], 0u);
    workgroupBarrier();
    for (var i = lane; i < sizes.size; i += ${workgroupSize}u) {
      let key = key_of(x[first + i]);
      ${sharesBytes(shift)}{ atomicAdd(&bins[(key >> ${shift}u) & 255u], 1u); }
    }
    workgroupBarrier();
    {
      let digit = 255u - lane;
      let own = atomicLoad(&bins[digit]);
      let above = scan(lane, own);
      if (above < remaining && above + own >= remaining) { picked = vec2<u32>(digit, remaining - above); }
    }
    workgroupBarrier();
    threshold |= picked.x << ${shift}u;
    remaining = picked.y;
  `;
  return {
    label: "top-k, a workgroup per row",
    bindings: [elementsBinding(), ...win.bindings],
    workgroupSize,
    groups: rows,
    code: wgsl`
      ${keyFunction(by, false, 1)}
      ${win.code}
      ${workgroupScan("u32", workgroupSize, workgroupSize)}
      var<workgroup> bins: array<atomic<u32>, 256>;
      var<workgroup> picked: vec2<u32>;
      fn main(group: u32, lane: u32) {
        let first = group * sizes.size;
        var threshold = 0u;
        var remaining = sizes.k;
        ${[24, 16, 8, 0].map(round)}
        var above = 0u;
        var equal = 0u;
        for (var base = 0u; base < sizes.size; base += ${each * workgroupSize}u) {
          let begin = base + ${each}u * lane;
          var keys: array<u32, ${each}>;
          var counts = 0u;
          for (var j = 0u; j < ${each}u; j++) {
            if (begin + j < sizes.size) {
              keys[j] = key_of(x[first + begin + j]);
              counts += select(select(0u, 0x10000u, keys[j] == threshold), 1u, keys[j] > threshold);
            }
          }
          let ahead = scan(lane, counts);
          let all = scan_total(lane);
          var greater = above + (ahead & 0xffffu);
          var ties = equal + (ahead >> 16u);
          for (var j = 0u; j < ${each}u; j++) {
            if (begin + j < sizes.size) {
              let key = keys[j];
              if (key > threshold || (key == threshold && ties < remaining)) {
                win(group * sizes.k + greater + min(ties, remaining), x[first + begin + j], key, begin + j);
              }
              greater += select(0u, 1u, key > threshold);
              ties += select(0u, 1u, key == threshold);
            }
          }
          above += all & 0xffffu;
          equal += all >> 16u;
        }
      }
    `,
    sizes: { size, k },
  };
};
