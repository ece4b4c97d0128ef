import type { Binding, BindingSource, DeviceFacts, Pass } from "../../kernel.ts";
import { workgroupSize } from "../reduce/fold.ts";
import { workgroupsWanted } from "../reduce/rows.ts";
import { workgroupScan } from "../scan/workgroup-scan.ts";
import { componentsOf, keySizes, keysText, type Layout } from "./radix-layout.ts";
import { elementsBinding, type Selection } from "./selection.ts";
import { wgsl } from "../../wgsl.ts";

// The k-th largest key of each row, in three rounds. Each round counts keys by their next digit and picks a digit.

/** Digits of a key, from the highest to the lowest: 11, 11 and 10 bits. */
export const rounds = [
  { shift: 21, bins: 2048 },
  { shift: 10, bins: 2048 },
  { shift: 0, bins: 1024 },
] as const;

/** Number of histogram bins per row, over all rounds. */
export const binsPerRow: number = rounds.reduce((sum, { bins }) => sum + bins, 0);

/**
 * Returns the binding of the states [round, row]: the digits of the threshold picked so far, and the number of winners
 * to select among the keys with these digits.
 */
export const state = (source: BindingSource, access: "read" | "write"): Binding => ({
  name: "states",
  type: "array<vec2<u32>>",
  source,
  access,
});

/** Returns the index of the first state that the previous round has written. */
const statesBefore = (rows: number, round: number): number => Math.max(0, round - 1) * rows;

/** Clears the bins for all rounds. */
export const clearPass = (bins: BindingSource, words: number): Pass => ({
  label: "top-k, clear bins",
  bindings: [{ name: "bins", type: "array<vec4<u32>>", source: bins, access: "write" }],
  workgroupSize,
  groups: Math.ceil(words / 4 / workgroupSize),
  code: wgsl`
    fn main(group: u32, lane: u32) {
      let at = group * ${workgroupSize}u + lane;
      if (4u * at < sizes.words) { bins[at] = vec4<u32>(); }
    }
  `,
  sizes: { words },
});

/**
 * Counts keys by their next digit. Only keys that have the digits picked so far are counted. Each workgroup counts in
 * workgroup memory, then adds its counts to the bins of the row.
 */
export const countPass = (
  selection: Selection,
  layout: Layout,
  round: number,
  bins: BindingSource,
  states: BindingSource,
  facts: DeviceFacts,
): Pass => {
  const { rows } = selection;
  const { lanes, vectors } = layout;
  const { shift, bins: count } = rounds[round]!;
  const offset = rounds.slice(0, round).reduce((sum, other) => sum + other.bins, 0);
  const above = round === 0 ? 32 : rounds[round - 1]!.shift;
  const turn = workgroupSize * 4;
  // At least eight registers per invocation, so that counting takes longer than adding the bins.
  const parts = Math.max(1, Math.min(Math.ceil(workgroupsWanted(facts) / rows), Math.floor(vectors / (2 * turn))));
  const chunk = Math.ceil(vectors / parts);
  const matches = (key: string): string => (round === 0 ? "" : ` && (${key} >> ${above}u) == prefix`);
  const tally = (j: number, lane: string): string =>
    `if (there${j}${lane}${matches(`k${j}${lane}`)}) { atomicAdd(&local[(k${j}${lane} >> ${shift}u) & ${count - 1}u], 1u); }`;
  const js = [0, 1, 2, 3];
  const both = lanes === 1 ? "bool" : "vec4<bool>";
  return {
    label: `top-k, count digit ${round + 1}`,
    bindings: [
      elementsBinding(lanes === 4),
      { name: "bins", type: "array<atomic<u32>>", source: bins, access: "write" },
      ...(round === 0 ? [] : [state(states, "read")]),
    ],
    workgroupSize,
    groups: rows * Math.ceil(vectors / chunk),
    code: wgsl`
      ${keysText(selection, layout)}
      var<workgroup> local: array<atomic<u32>, ${count}>;
      fn main(group: u32, lane: u32) {
        let row = group / sizes.parts;
        ${round === 0 ? "" : `let prefix = states[sizes.states + row].x >> ${above}u;`}
        for (var bin = lane; bin < ${count}u; bin += ${workgroupSize}u) { atomicStore(&local[bin], 0u); }
        workgroupBarrier();
        let begin = group % sizes.parts * sizes.chunk;
        let stop = min(begin + sizes.chunk, sizes.vectors);
        for (var v = begin + lane; v < stop; v += ${turn}u) {
          ${js.map((j) => `let k${j} = keys_at(row, v + ${j * workgroupSize}u);`)}
          ${js.map((j) => `let there${j} = is_there(v + ${j * workgroupSize}u) & ${both}(v + ${j * workgroupSize}u < stop);`)}
          ${js.flatMap((j) => componentsOf(lanes).map((lane) => tally(j, lane)))}
        }
        workgroupBarrier();
        for (var bin = lane; bin < ${count}u; bin += ${workgroupSize}u) {
          let found = atomicLoad(&local[bin]);
          if (found > 0u) { atomicAdd(&bins[row * ${binsPerRow}u + ${offset}u + bin], found); }
        }
      }
    `,
    sizes: {
      ...keySizes(selection, layout),
      chunk,
      parts: Math.ceil(vectors / chunk),
      states: statesBefore(rows, round),
    },
  };
};

/**
 * Picks the next digit of the threshold: counting keys from the largest digit downwards, the digit at which the count
 * reaches the number of winners to select. Writes states: the digits picked so far, and the number of winners to select
 * among the keys with these digits.
 */
export const pickPass = ({ rows, k }: Selection, round: number, bins: BindingSource, states: BindingSource): Pass => {
  const { shift, bins: count } = rounds[round]!;
  const offset = rounds.slice(0, round).reduce((sum, other) => sum + other.bins, 0);
  const each = count / workgroupSize;
  return {
    label: `top-k, pick digit ${round + 1}`,
    bindings: [{ name: "bins", type: "array<u32>", source: bins, access: "read" }, state(states, "write")],
    workgroupSize,
    groups: rows,
    code: wgsl`
      ${workgroupScan("u32", workgroupSize, workgroupSize)}
      fn main(group: u32, lane: u32) {
        let begin = group * ${binsPerRow}u + ${offset}u;
        let top = ${count - 1}u - lane * ${each}u;
        var own = 0u;
        for (var j = 0u; j < ${each}u; j++) { own += bins[begin + top - j]; }
        let found = ${round === 0 ? "vec2<u32>(0u, sizes.k)" : "states[sizes.states + group]"};
        var above = scan(lane, own);
        for (var j = 0u; j < ${each}u; j++) {
          let here = bins[begin + top - j];
          if (above < found.y && above + here >= found.y) {
            states[sizes.states_to + group] = vec2<u32>(found.x | ((top - j) << ${shift}u), found.y - above);
          }
          above += here;
        }
      }
    `,
    sizes: { k, states: statesBefore(rows, round), states_to: round * rows },
  };
};
