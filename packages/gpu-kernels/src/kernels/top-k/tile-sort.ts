import type { Pass } from "../../kernel.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { workgroupSize } from "../reduce/fold.ts";
import { keyFunction } from "../reduce/order-keys.ts";
import { beforeText, elementsBinding, type Selection, type Winners, winnerBindings, winText } from "./selection.ts";
import { wgsl } from "../../wgsl.ts";

/** Number of elements that one workgroup sorts. Their keys and positions take 8 KiB. */
export const sortTile = 1024;

/**
 * Sorts tiles of each row, largest first (Batcher, Sorting networks and their applications, 1968; every stage begins
 * with a mirrored step, so that all comparisons have the same direction). Takes about log₂²(tile)/2 steps, with one
 * barrier each. Several short rows share a workgroup.
 *
 * @param from Winners to sort, or the elements themselves.
 * @param count Number of items of a row to sort. If a row fits in a tile, its first k items are written to `to`, or to
 * the results.
 */
export const tileSortPass = (
  selection: Selection,
  from: Winners | "elements",
  count: number,
  to: Winners | undefined,
): Pass => {
  const { rows, size, k, by } = selection;
  const segment = Math.min(sortTile, powerOfTwoAbove(count));
  const tiles = Math.ceil(count / segment);
  const win = winText(to);
  const final = to === undefined;
  const load =
    from === "elements"
      ? "keys[i] = key_of(x[row * sizes.size + place]); places[i] = place;"
      : `keys[i] = from_keys[row * sizes.count + place]; places[i] = from_places[row * sizes.count + place];`;
  return {
    label: `top-k, sort tiles of ${segment}`,
    bindings: [
      ...(from === "elements" || final ? [elementsBinding()] : []),
      ...(from === "elements" ? [] : winnerBindings(from)),
      ...win.bindings,
    ],
    workgroupSize,
    groups: Math.ceil((rows * tiles * segment) / sortTile),
    code: wgsl`
      ${from === "elements" ? keyFunction(by, false, 1) : ""}
      ${beforeText}
      ${win.code}
      var<workgroup> keys: array<u32, ${sortTile}>;
      var<workgroup> places: array<u32, ${sortTile}>;
      fn order(i: u32, j: u32) {
        let key_i = keys[i];
        let key_j = keys[j];
        let place_i = places[i];
        let place_j = places[j];
        if (before(key_j, place_j, key_i, place_i)) {
          keys[i] = key_j;
          keys[j] = key_i;
          places[i] = place_j;
          places[j] = place_i;
        }
      }
      fn main(group: u32, lane: u32) {
        for (var i = lane; i < ${sortTile}u; i += ${workgroupSize}u) {
          let tile = (group * ${sortTile}u + i) / sizes.segment;
          let row = tile / sizes.tiles;
          let place = tile % sizes.tiles * sizes.segment + i % sizes.segment;
          // Behind everything else.
          keys[i] = 0u;
          places[i] = 0xffffffffu;
          if (row < sizes.rows && place < sizes.count) { ${load} }
        }
        for (var width = 2u; width <= sizes.segment; width <<= 1u) {
          workgroupBarrier();
          let half = width >> 1u;
          for (var pair = lane; pair < ${sortTile / 2}u; pair += ${workgroupSize}u) {
            let i = ((pair & ~(half - 1u)) << 1u) | (pair & (half - 1u));
            order(i, i ^ (width - 1u));
          }
          for (var step = half >> 1u; step > 0u; step >>= 1u) {
            workgroupBarrier();
            for (var pair = lane; pair < ${sortTile / 2}u; pair += ${workgroupSize}u) {
              let i = ((pair & ~(step - 1u)) << 1u) | (pair & (step - 1u));
              order(i, i | step);
            }
          }
        }
        workgroupBarrier();
        for (var i = lane; i < ${sortTile}u; i += ${workgroupSize}u) {
          let tile = (group * ${sortTile}u + i) / sizes.segment;
          let row = tile / sizes.tiles;
          let rank = tile % sizes.tiles * sizes.segment + i % sizes.segment;
          if (row < sizes.rows && rank < sizes.kept) {
            win(row * sizes.kept + rank, ${final ? "x[row * sizes.size + places[i]]" : "0u"}, keys[i], places[i]);
          }
        }
      }
    `,
    sizes: { rows, size, segment, tiles, count, kept: Math.min(count, k) },
  };
};
