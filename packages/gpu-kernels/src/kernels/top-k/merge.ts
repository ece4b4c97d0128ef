import type { Pass } from "../../kernel.ts";
import { workgroupSize } from "../reduce/fold.ts";
import { beforeText, elementsBinding, type Selection, type Winners, winnerBindings, winText } from "./selection.ts";
import { sortTile } from "./tile-sort.ts";
import { wgsl } from "../../wgsl.ts";

/** Number of merged elements per invocation. */
const each = sortTile / workgroupSize;

/**
 * Merges adjacent sorted runs of `run` selected elements into runs of twice the length. A workgroup writes 1024
 * elements. The workgroup finds the corresponding sections of both runs by bisection, and each invocation does the same
 * for its four elements (Green, McColl and Bader, GPU Merge Path, 2012). Reads and writes every selected element once,
 * and reads log₂(run) keys per workgroup.
 */
export const mergePass = ({ rows, size, k }: Selection, run: number, from: Winners, to: Winners | undefined): Pass => {
  const win = winText(to);
  const final = to === undefined;
  const tiles = Math.ceil(k / sortTile);
  return {
    label: "top-k, merge runs",
    bindings: [...(final ? [elementsBinding()] : []), ...winnerBindings(from), ...win.bindings],
    workgroupSize,
    groups: rows * tiles,
    code: wgsl`
      ${beforeText}
      ${win.code}
      var<workgroup> keys: array<u32, ${sortTile}>;
      var<workgroup> places: array<u32, ${sortTile}>;
      var<workgroup> splits: array<u32, 2>;
      fn from_first(first: u32, size_a: u32, second: u32, size_b: u32, results: u32) -> u32 {
        var low = select(0u, results - size_b, results > size_b);
        var high = min(results, size_a);
        while (low < high) {
          let a = (low + high) / 2u;
          let b = results - 1u - a;
          if (before(from_keys[first + a], from_places[first + a], from_keys[second + b], from_places[second + b])) {
            low = a + 1u;
          } else {
            high = a;
          }
        }
        return low;
      }
      fn main(group: u32, lane: u32) {
        let row = group / sizes.tiles;
        let rank = group % sizes.tiles * ${sortTile}u;
        let pair = rank / (2u * sizes.run) * (2u * sizes.run);
        let size_a = min(sizes.run, sizes.k - pair);
        let size_b = min(sizes.run, sizes.k - pair - size_a);
        let first = row * sizes.k + pair;
        let second = first + size_a;
        let begin = rank - pair;
        let count = min(${sortTile}u, size_a + size_b - begin);
        if (lane < 2u) { splits[lane] = from_first(first, size_a, second, size_b, begin + lane * count); }
        workgroupBarrier();
        let begin_a = splits[0];
        let count_a = splits[1] - begin_a;
        let begin_b = begin - begin_a;
        for (var i = lane; i < count; i += ${workgroupSize}u) {
          let at = select(second + begin_b + i - count_a, first + begin_a + i, i < count_a);
          keys[i] = from_keys[at];
          places[i] = from_places[at];
        }
        workgroupBarrier();
        let own = min(${each}u * lane, count);
        let count_b = count - count_a;
        var a = select(0u, own - count_b, own > count_b);
        var high = min(own, count_a);
        while (a < high) {
          let middle = (a + high) / 2u;
          let other = count_a + own - 1u - middle;
          if (before(keys[middle], places[middle], keys[other], places[other])) { a = middle + 1u; } else { high = middle; }
        }
        var b = count_a + own - a;
        for (var i = own; i < min(own + ${each}u, count); i++) {
          var next = b;
          if (a < count_a && (b >= count || before(keys[a], places[a], keys[b], places[b]))) { next = a; a++; } else { b++; }
          win(row * sizes.k + rank + i, ${final ? "x[row * sizes.size + places[next]]" : "0u"}, keys[next], places[next]);
        }
      }
    `,
    sizes: { size, run, k, tiles },
  };
};
