import type { BindingSource, Pass } from "../../kernel.ts";
import { laneType, workgroupSize } from "../reduce/fold.ts";
import { workgroupScan } from "../scan/workgroup-scan.ts";
import { componentsOf, keySizes, keysText, type Layout, registers } from "./radix-layout.ts";
import { rounds, state } from "./radix-threshold.ts";
import { elementsBinding, type Selection, type Winners, winText } from "./selection.ts";
import { wgsl } from "../../wgsl.ts";

// Index of the last round. For each row, the passes of this file select the keys above the threshold and the first keys
// equal to the threshold, in order of position.

const lastRound = rounds.length - 1;

/**
 * Returns WGSL functions that all passes over tiles share. The functions count the keys of a register that are greater
 * than the threshold, and the keys that are equal to the threshold. `packed` returns both counts in the halves of a
 * word.
 */
const tileText = (selection: Selection, layout: Layout): string => {
  const { lanes } = layout;
  const type = laneType("u32", lanes);
  return wgsl`
    ${keysText(selection, layout)}
    fn greater(k: ${type}, threshold: u32, v: u32) -> ${type} { return select(${type}(0u), ${type}(1u), (k > ${type}(threshold)) & is_there(v)); }
    fn equals(k: ${type}, threshold: u32, v: u32) -> ${type} { return select(${type}(0u), ${type}(1u), (k == ${type}(threshold)) & is_there(v)); }
    fn packed(k: ${type}, threshold: u32, v: u32) -> u32 {
      let c = greater(k, threshold, v) | (equals(k, threshold, v) << ${lanes === 1 ? "16u" : "vec4<u32>(16u)"});
      return ${lanes === 1 ? "c" : "(c.x + c.y) + (c.z + c.w)"};
    }
  `;
};

/**
 * Counts for each tile the keys greater than the threshold and the keys equal to the threshold: counts[row, 2, tile].
 */
export const tileCountPass = (
  selection: Selection,
  layout: Layout,
  states: BindingSource,
  counts: BindingSource,
): Pass => {
  const { rows } = selection;
  const { lanes, tiles, stride } = layout;
  const counted = Array.from(
    { length: registers },
    (_, j) => `packed(keys_at(row, v + ${j * workgroupSize}u), threshold, v + ${j * workgroupSize}u)`,
  ).join("\n  + ");
  const steps: string[] = [];
  for (let step = workgroupSize / 2; step >= 1; step /= 2)
    steps.push(wgsl`
      workgroupBarrier();
      if (lane < ${step}u) { sum += sums[lane + ${step}u]; sums[lane] = sum; }
    `);
  return {
    label: "top-k, count tiles",
    bindings: [
      elementsBinding(lanes === 4),
      state(states, "read"),
      { name: "counts", type: "array<u32>", source: counts, access: "write" },
    ],
    workgroupSize,
    groups: rows * tiles,
    code: wgsl`
      ${tileText(selection, layout)}
      var<workgroup> sums: array<u32, ${workgroupSize}>;
      fn main(group: u32, lane: u32) {
        let row = group / sizes.tiles;
        let tile = group % sizes.tiles;
        let threshold = states[sizes.states + row].x;
        let v = tile * ${registers * workgroupSize}u + lane;
        var sum = ${counted};
        sums[lane] = sum;
        ${steps}
        if (lane == 0u) {
          counts[2u * row * sizes.stride + tile] = sum & 0xffffu;
          counts[(2u * row + 1u) * sizes.stride + tile] = sum >> 16u;
        }
      }
    `,
    sizes: { ...keySizes(selection, layout), tiles, stride, states: lastRound * rows },
  };
};

/** Writes the winners (the selected elements) of every tile in order of position. */
export const compactPass = (
  selection: Selection,
  layout: Layout,
  states: BindingSource,
  before: BindingSource,
  to: Winners | undefined,
): Pass => {
  const { rows, k } = selection;
  const { lanes, tiles, stride } = layout;
  const win = winText(to);
  const components = componentsOf(lanes);
  const js = Array.from({ length: registers }, (_, j) => j);
  const at = (j: number): string => `v + ${j * workgroupSize}u`;
  const packedKeys = js.map((j) => `packed(k${j}, threshold, ${at(j)})`).join(", ");
  const write = (j: number): string => wgsl`
    {
      let g = greater(k${j}, threshold, ${at(j)});
      let e = equals(k${j}, threshold, ${at(j)});
      var above = carry.x + (ahead.${"xyzw"[j]!} & 0xffffu);
      var ties = carry.y + (ahead.${"xyzw"[j]!} >> 16u);
      ${components.map((lane, i) => {
        const place = lanes === 1 ? at(j) : `4u * (${at(j)}) + ${i}u`;
        const bits = `x[row * sizes.vectors + ${at(j)}]${lane}`;
        return wgsl`
          if (g${lane} != 0u || (e${lane} != 0u && ties < state.y)) {
            win(row * sizes.k + above + min(ties, state.y), ${bits}, k${j}${lane}, ${place});
          }
          above += g${lane};
          ties += e${lane};
        `;
      })}
      carry += vec2<u32>(all.${"xyzw"[j]!} & 0xffffu, all.${"xyzw"[j]!} >> 16u);
    }
  `;
  return {
    label: "top-k, compact",
    bindings: [
      elementsBinding(lanes === 4),
      state(states, "read"),
      { name: "counted", type: "array<u32>", source: before, access: "read" },
      ...win.bindings,
    ],
    workgroupSize,
    groups: rows * tiles,
    code: wgsl`
      ${tileText(selection, layout)}
      ${win.code}
      ${workgroupScan("vec4<u32>", workgroupSize, workgroupSize)}
      fn main(group: u32, lane: u32) {
        let row = group / sizes.tiles;
        let tile = group % sizes.tiles;
        let state = states[sizes.states + row];
        let threshold = state.x;
        let v = tile * ${registers * workgroupSize}u + lane;
        ${js.map((j) => `let k${j} = keys_at(row, ${at(j)});`)}
        let ahead = scan(lane, vec4<u32>(${packedKeys}));
        let all = scan_total(lane);
        var carry = vec2<u32>();
        if (tile > 0u) {
          carry = vec2<u32>(counted[2u * row * sizes.stride + tile - 1u], counted[(2u * row + 1u) * sizes.stride + tile - 1u]);
        }
        ${js.map(write)}
      }
    `,
    sizes: { ...keySizes(selection, layout), tiles, stride, states: lastRound * rows, k },
  };
};
