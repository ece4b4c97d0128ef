import { wgsl } from "../../wgsl.ts";

/**
 * Lanes that process one row: `lanes` adjacent invocations (a power of two) of a workgroup, and the number of adjacent
 * invocations that can exchange values by subgroup shuffles.
 */
export interface RowLanes {
  readonly lanes: number;
  readonly workgroupSize: number;
  /** Number of adjacent invocations that are guaranteed to be in the same subgroup; 1 without subgroups. */
  readonly shuffled: number;
}

type Reduced = "f32" | "vec2<f32>";

/**
 * Maximum number of partial results that every lane reads and combines on its own after one barrier. For more partial
 * results, combining in two steps is faster, despite the second barrier.
 */
const readByAll = 32;
const fanIn = 16;

const serial = (
  from: string,
  first: string,
  count: number,
  type: Reduced,
  combine: (a: string, b: string) => string,
): string =>
  wgsl`
    var v = ${from}[${first}];
    for (var i = 1u; i < ${count}u; i++) { v = ${combine("v", `${from}[${first} + i]`)}; }
  `;

/**
 * Returns WGSL of `fn <name>(lane: u32, value: T) -> T`, which returns `value` combined over the lanes of a row,
 * bitwise identical in each lane. Uses a butterfly of shuffles within a subgroup. The values of the subgroups are
 * combined through workgroup memory in one step, or in two steps if there are many. Must be called in uniform control
 * flow.
 */
const reduction = (
  name: string,
  type: Reduced,
  combine: (a: string, b: string) => string,
  layout: RowLanes,
): string => {
  const { lanes, workgroupSize } = layout;
  const shuffled = Math.min(layout.shuffled, lanes);
  const lines: string[] = [];
  for (let step = 1; step < shuffled; step *= 2)
    lines.push(`own = ${combine("own", `subgroupShuffleXor(own, ${step}u)`)};`);
  const entries = lanes / shuffled;
  if (entries === 1)
    return wgsl`
      fn ${name}(lane: u32, value: ${type}) -> ${type} {
        var own = value;
        ${lines}
        return own;
      }
    `;
  const twoLevels = entries > readByAll;
  const shared = [`var<workgroup> ${name}_shared: array<${type}, ${workgroupSize / shuffled}>;`];
  lines.push(
    shuffled === 1
      ? `${name}_shared[lane] = own;`
      : `if (lane % ${shuffled}u == 0u) { ${name}_shared[lane / ${shuffled}u] = own; }`,
    "workgroupBarrier();",
  );
  if (twoLevels) {
    const groups = entries / fanIn;
    shared.push(`var<workgroup> ${name}_groups: array<${type}, ${(workgroupSize / lanes) * groups}>;`);
    const [row, own] = [`(lane / ${lanes}u)`, `lane % ${lanes}u`];
    // No barrier is needed at the end: the next call writes the first array after this barrier, and the second array
    // after its own first barrier.
    lines.push(wgsl`
      if (${own} < ${groups}u) {
        ${serial(`${name}_shared`, `${row} * ${entries}u + (${own}) * ${fanIn}u`, fanIn, type, combine)}
        ${name}_groups[${row} * ${groups}u + ${own}] = v;
      }
      workgroupBarrier();
      ${serial(`${name}_groups`, `${row} * ${groups}u`, groups, type, combine)}
    `);
  } else {
    lines.push(wgsl`
      ${serial(`${name}_shared`, `(lane / ${lanes}u) * ${entries}u`, entries, type, combine)}
      workgroupBarrier();
    `);
  }
  return wgsl`
    ${shared}
    fn ${name}(lane: u32, value: ${type}) -> ${type} {
      var own = value;
      ${lines}
      return v;
    }
  `;
};

const sum = (a: string, b: string): string => `${a} + ${b}`;

/**
 * Returns the WGSL of the functions `row_sum`, `row_sum2` (of pairs) and `row_max`, if `code` calls them. `row_max`
 * accepts numbers and infinities, but not NaN.
 */
export const rowReductions = (code: string, layout: RowLanes): string[] => [
  /\brow_sum\(/.test(code) ? reduction("row_sum", "f32", sum, layout) : "",
  /\brow_sum2\(/.test(code) ? reduction("row_sum2", "vec2<f32>", sum, layout) : "",
  /\brow_max\(/.test(code) ? reduction("row_max", "f32", (a, b) => `max(${a}, ${b})`, layout) : "",
];
