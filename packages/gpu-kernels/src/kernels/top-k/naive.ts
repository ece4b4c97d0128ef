import type { KernelPlan } from "../../kernel.ts";
import { keyFunction } from "../reduce/order-keys.ts";
import { beforeText, elementsBinding, type Selection, winText } from "./selection.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/**
 * Selects the k largest elements by definition: one invocation per row searches, k times, for the best element among
 * those that rank after the previously selected element. Reference for tests of the radix selection and its sorting.
 */
export const topKNaive = ({ rows, size, k, by }: Selection): KernelPlan => {
  const win = winText(undefined);
  return {
    passes: [
      {
        label: "top-k naive",
        bindings: [elementsBinding(), ...win.bindings],
        workgroupSize: lanes,
        groups: Math.ceil(rows / lanes),
        sizes: { rows, size, k },
        code: wgsl`
          ${keyFunction(by, false, 1)}
          ${beforeText}
          ${win.code}
          fn main(group: u32, lane: u32) {
            let row = group * ${lanes}u + lane;
            if (row >= sizes.rows) { return; }
            var last_key = 0u;
            var last_place = 0u;
            for (var rank = 0u; rank < sizes.k; rank++) {
              var found = false;
              var best_key = 0u;
              var best_place = 0u;
              for (var place = 0u; place < sizes.size; place++) {
                let key = key_of(x[row * sizes.size + place]);
                let left = rank == 0u || before(last_key, last_place, key, place);
                if (left && (!found || before(key, place, best_key, best_place))) {
                  found = true;
                  best_key = key;
                  best_place = place;
                }
              }
              win(row * sizes.k + rank, x[row * sizes.size + best_place], best_key, best_place);
              last_key = best_key;
              last_place = best_place;
            }
          }
        `,
      },
    ],
  };
};
