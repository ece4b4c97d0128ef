import type { BindingSource, DeviceFacts, Pass } from "../../kernel.ts";
import { type Lanes, laneType, workgroupSize } from "../reduce/fold.ts";
import { keyFunction } from "../reduce/order-keys.ts";
import { workgroupsWanted } from "../reduce/rows.ts";
import { rowScanPasses } from "../scan/rows.ts";
import { workgroupScan } from "../scan/workgroup-scan.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { elementsBinding, type Selection, type Winners, winText } from "./selection.ts";

/** Digits of a key from the top: 11, 11 and 10 bits. */
const rounds = [
  { shift: 21, bins: 2048 },
  { shift: 10, bins: 2048 },
  { shift: 0, bins: 1024 },
] as const;

const binsPerRow = rounds.reduce((sum, { bins }) => sum + bins, 0);

/** Registers of an invocation in a tile. */
const registers = 4;

interface Layout {
  readonly lanes: Lanes;
  /** Registers of a row. */
  readonly vectors: number;
  /** Tiles of a row, 256 times `registers` registers each. */
  readonly tiles: number;
  /**
   * Counts of a row: whole registers, so that one pass sums those of 4096 tiles. What stands behind the last tile's is
   * added to nothing.
   */
  readonly stride: number;
}

const layoutOf = ({ rows, size }: Selection): Layout => {
  const lanes = size % 4 === 0 || rows === 1 ? 4 : 1;
  const vectors = Math.ceil(size / lanes);
  const tiles = Math.ceil(vectors / (workgroupSize * registers));
  return { lanes, vectors, tiles, stride: 4 * Math.ceil(tiles / 4) };
};

/**
 * `fn keys_at(row, v) -> <keys>` and `fn is_there(v) -> <bools>`: register v of a row, and which of it belongs to the
 * row.
 */
const keysText = ({ by, size }: Selection, { lanes }: Layout): string => {
  const ends = lanes === 4 && size % 4 !== 0;
  const inside = lanes === 1 ? "v < sizes.vectors" : "vec4<bool>(v < sizes.vectors)";
  return `${keyFunction(by, false, lanes)}fn keys_at(row: u32, v: u32) -> ${laneType("u32", lanes)} { return key_of(x[row * sizes.vectors + min(v, sizes.vectors - 1u)]); }
fn is_there(v: u32) -> ${laneType("bool", lanes)} { return ${ends ? `(4u * v + vec4<u32>(0u, 1u, 2u, 3u)) < vec4<u32>(${size}u)` : inside}; }
`;
};

const componentsOf = (lanes: Lanes): readonly string[] => (lanes === 1 ? [""] : [".x", ".y", ".z", ".w"]);

const state = (source: BindingSource, access: "read" | "write") =>
  ({ name: "states", type: "array<vec2<u32>>", source, access }) as const;

const clearPass = (bins: BindingSource, words: number): Pass => ({
  label: "top-k, clear bins",
  bindings: [{ name: "bins", type: "array<vec4<u32>>", source: bins, access: "write" }],
  workgroupSize,
  groups: Math.ceil(words / 4 / workgroupSize),
  code: `fn main(group: u32, lane: u32) {
  let at = group * ${workgroupSize}u + lane;
  if (4u * at < sizes.words) { bins[at] = vec4<u32>(); }
}
`,
  sizes: { words },
});

/** Count keys that share the digits picked so far by their next one: in workgroup memory, then onto the row's bins. */
const countPass = (
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
  // At least eight registers for each invocation, so that bins are filled more often than they are emptied.
  const parts = Math.max(1, Math.min(Math.ceil(workgroupsWanted(facts) / rows), Math.floor(vectors / (2 * turn))));
  const chunk = Math.ceil(vectors / parts);
  const matches = (key: string): string => (round === 0 ? "" : ` && (${key} >> ${above}u) == prefix`);
  const tally = (j: number): string =>
    componentsOf(lanes)
      .map(
        (lane) =>
          `    if (there${j}${lane}${matches(`k${j}${lane}`)}) { atomicAdd(&local[(k${j}${lane} >> ${shift}u) & ${count - 1}u], 1u); }`,
      )
      .join("\n");
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
    code: `${keysText(selection, layout)}var<workgroup> local: array<atomic<u32>, ${count}>;
fn main(group: u32, lane: u32) {
  let row = group / sizes.parts;
  ${round === 0 ? "" : `let prefix = states[${(round - 1) * rows}u + row].x >> ${above}u;`}
  for (var bin = lane; bin < ${count}u; bin += ${workgroupSize}u) { atomicStore(&local[bin], 0u); }
  workgroupBarrier();
  let begin = group % sizes.parts * sizes.chunk;
  let stop = min(begin + sizes.chunk, sizes.vectors);
  for (var v = begin + lane; v < stop; v += ${turn}u) {
${js.map((j) => `    let k${j} = keys_at(row, v + ${j * workgroupSize}u);`).join("\n")}
${js.map((j) => `    let there${j} = is_there(v + ${j * workgroupSize}u) & ${both}(v + ${j * workgroupSize}u < stop);`).join("\n")}
${js.map(tally).join("\n")}
  }
  workgroupBarrier();
  for (var bin = lane; bin < ${count}u; bin += ${workgroupSize}u) {
    let found = atomicLoad(&local[bin]);
    if (found > 0u) { atomicAdd(&bins[row * ${binsPerRow}u + ${offset}u + bin], found); }
  }
}
`,
    sizes: { vectors, chunk, parts: Math.ceil(vectors / chunk) },
  };
};

/**
 * Pick the digit at which the count from above reaches what remains to be found: states are the digits so far, and how
 * many of them to take.
 */
const pickPass = ({ rows, k }: Selection, round: number, bins: BindingSource, states: BindingSource): Pass => {
  const { shift, bins: count } = rounds[round]!;
  const offset = rounds.slice(0, round).reduce((sum, other) => sum + other.bins, 0);
  const each = count / workgroupSize;
  return {
    label: `top-k, pick digit ${round + 1}`,
    bindings: [{ name: "bins", type: "array<u32>", source: bins, access: "read" }, state(states, "write")],
    workgroupSize,
    groups: rows,
    code: `${workgroupScan("u32", workgroupSize, workgroupSize)}
fn main(group: u32, lane: u32) {
  let begin = group * ${binsPerRow}u + ${offset}u;
  let top = ${count - 1}u - lane * ${each}u;
  var own = 0u;
  for (var j = 0u; j < ${each}u; j++) { own += bins[begin + top - j]; }
  let found = ${round === 0 ? `vec2<u32>(0u, ${k}u)` : `states[${(round - 1) * rows}u + group]`};
  var above = scan(lane, own);
  for (var j = 0u; j < ${each}u; j++) {
    let here = bins[begin + top - j];
    if (above < found.y && above + here >= found.y) {
      states[${round * rows}u + group] = vec2<u32>(found.x | ((top - j) << ${shift}u), found.y - above);
    }
    above += here;
  }
}
`,
  };
};

/**
 * What the passes over tiles share: the threshold, and keys above and equal to it in registers, packed as counts in
 * halves of a word.
 */
const tileText = (selection: Selection, layout: Layout): string => {
  const { lanes } = layout;
  const type = laneType("u32", lanes);
  return `${keysText(selection, layout)}fn greater(k: ${type}, threshold: u32, v: u32) -> ${type} { return select(${type}(0u), ${type}(1u), (k > ${type}(threshold)) & is_there(v)); }
fn equals(k: ${type}, threshold: u32, v: u32) -> ${type} { return select(${type}(0u), ${type}(1u), (k == ${type}(threshold)) & is_there(v)); }
fn packed(k: ${type}, threshold: u32, v: u32) -> u32 {
  let c = greater(k, threshold, v) | (equals(k, threshold, v) << ${lanes === 1 ? "16u" : "vec4<u32>(16u)"});
  return ${lanes === 1 ? "c" : "(c.x + c.y) + (c.z + c.w)"};
}
`;
};

const last = rounds.length - 1;

/** Of every tile, how many keys are above the threshold and how many equal it: counts[row, 2, tile]. */
const tileCountPass = (selection: Selection, layout: Layout, states: BindingSource, counts: BindingSource): Pass => {
  const { rows } = selection;
  const { lanes, vectors, tiles, stride } = layout;
  const js = Array.from(
    { length: registers },
    (_, j) => `packed(keys_at(row, v + ${j * workgroupSize}u), threshold, v + ${j * workgroupSize}u)`,
  );
  const steps: string[] = [];
  for (let step = workgroupSize / 2; step >= 1; step /= 2)
    steps.push(`  workgroupBarrier();
  if (lane < ${step}u) { sum += sums[lane + ${step}u]; sums[lane] = sum; }`);
  return {
    label: "top-k, count tiles",
    bindings: [
      elementsBinding(lanes === 4),
      state(states, "read"),
      { name: "counts", type: "array<u32>", source: counts, access: "write" },
    ],
    workgroupSize,
    groups: rows * tiles,
    code: `${tileText(selection, layout)}var<workgroup> sums: array<u32, ${workgroupSize}>;
fn main(group: u32, lane: u32) {
  let row = group / ${tiles}u;
  let tile = group % ${tiles}u;
  let threshold = states[${last * rows}u + row].x;
  let v = tile * ${registers * workgroupSize}u + lane;
  var sum = ${js.join("\n    + ")};
  sums[lane] = sum;
${steps.join("\n")}
  if (lane == 0u) {
    counts[2u * row * ${stride}u + tile] = sum & 0xffffu;
    counts[(2u * row + 1u) * ${stride}u + tile] = sum >> 16u;
  }
}
`,
    sizes: { vectors },
  };
};

/** Write the winners of every tile in order of position. */
const compactPass = (
  selection: Selection,
  layout: Layout,
  states: BindingSource,
  before: BindingSource,
  to: Winners | undefined,
): Pass => {
  const { rows, k } = selection;
  const { lanes, vectors, tiles, stride } = layout;
  const win = winText(to);
  const components = componentsOf(lanes);
  const js = Array.from({ length: registers }, (_, j) => j);
  const at = (j: number): string => `v + ${j * workgroupSize}u`;
  const write = (j: number): string => `  {
    let g = greater(k${j}, threshold, ${at(j)});
    let e = equals(k${j}, threshold, ${at(j)});
    var above = carry.x + (ahead.${"xyzw"[j]} & 0xffffu);
    var ties = carry.y + (ahead.${"xyzw"[j]} >> 16u);
${components
  .map((lane, i) => {
    const place = lanes === 1 ? at(j) : `4u * (${at(j)}) + ${i}u`;
    const bits = `x[row * sizes.vectors + ${at(j)}]${lane}`;
    return `    if (g${lane} != 0u || (e${lane} != 0u && ties < state.y)) { win(row * ${k}u + above + min(ties, state.y), ${bits}, k${j}${lane}, ${place}); }
    above += g${lane};
    ties += e${lane};`;
  })
  .join("\n")}
    carry += vec2<u32>(all.${"xyzw"[j]} & 0xffffu, all.${"xyzw"[j]} >> 16u);
  }`;
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
    code: `${tileText(selection, layout)}${win.code}${workgroupScan("vec4<u32>", workgroupSize, workgroupSize)}
fn main(group: u32, lane: u32) {
  let row = group / ${tiles}u;
  let tile = group % ${tiles}u;
  let state = states[${last * rows}u + row];
  let threshold = state.x;
  let v = tile * ${registers * workgroupSize}u + lane;
${js.map((j) => `  let k${j} = keys_at(row, ${at(j)});`).join("\n")}
  let ahead = scan(lane, vec4<u32>(${js.map((j) => `packed(k${j}, threshold, ${at(j)})`).join(", ")}));
  let all = scan_total(lane);
  var carry = vec2<u32>();
  if (tile > 0u) { carry = vec2<u32>(counted[2u * row * ${stride}u + tile - 1u], counted[(2u * row + 1u) * ${stride}u + tile - 1u]); }
${js.map(write).join("\n")}
}
`,
    sizes: { vectors },
  };
};

/**
 * Long rows, many workgroups each: three rounds of counting and picking find the k-th greatest key, the counts of tiles
 * become the places of their winners, and the winners move. Reads everything five times, writes the winners once; the
 * same places whatever the schedule, as only counts are added by atomics.
 */
export const radixSelectPasses = (
  selection: Selection,
  to: Winners | undefined,
  blocks: ScratchBlocks,
  facts: DeviceFacts,
): Pass[] => {
  const { rows } = selection;
  const layout = layoutOf(selection);
  const bins = blocks.take(rows * binsPerRow);
  const states = blocks.take(2 * rounds.length * rows);
  const counts = blocks.take(2 * rows * layout.stride);
  const counted = blocks.take(2 * rows * layout.stride);
  return [
    clearPass(bins, rows * binsPerRow),
    ...rounds.flatMap((_, round) => [
      countPass(selection, layout, round, bins, states, facts),
      pickPass(selection, round, bins, states),
    ]),
    tileCountPass(selection, layout, states, counts),
    ...rowScanPasses({ type: "u32", rows: 2 * rows, size: layout.stride, reverse: false }, counts, counted, blocks),
    compactPass(selection, layout, states, counted, to),
  ];
};
