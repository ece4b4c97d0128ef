import type { Binding, BindingSource, KernelPlan, Pass } from "../../kernel.ts";
import type { IndexedSizes } from "./gather.ts";
import { stableOrderPasses } from "./stable-order.ts";
import { wgsl } from "../../wgsl.ts";

// Number of invocations per workgroup. Every variant adds to output 0, which already holds the base: `y[block,
// indices[i], :] += updates[block, i, :]`, in the order of i.

const lanes = 256;

/**
 * Number of updates that are loaded before the first is added, so that a row with many updates does not wait for each
 * load.
 */
const loadsAhead = 8;

const indices: Binding = { name: "indices", type: "array<u32>", source: { input: 1 }, access: "read" };

/**
 * Returns the number of units per row, and the WGSL type of a unit. Each lane processes one unit: a vector of four
 * floats if the row length is a multiple of four, otherwise one float.
 */
const rowUnits = (inner: number): { readonly width: number; readonly type: string } =>
  inner % 4 === 0 ? { width: inner / 4, type: "vec4<f32>" } : { width: inner, type: "f32" };

const floats = (inner: number): readonly Binding[] => {
  const type = `array<${rowUnits(inner).type}>`;
  return [
    { name: "updates", type, source: { input: 2 }, access: "read" },
    { name: "y", type, source: { output: 0 }, access: "write" },
  ];
};

/** Returns the fields of the uniform `sizes`, which are not part of the shader text. */
const uniformSizes = ({ outer, size, count }: IndexedSizes, width: number): { readonly [name: string]: number } => ({
  units: outer * count * width,
  rows: size,
  count,
});

/**
 * Returns WGSL that declares the coordinates of invocation `at`: `unit` within the row, `k` (position in the list of
 * indices), and `block`.
 */
const decode = ({ outer, count }: IndexedSizes, width: number): string => wgsl`
  let at = group * ${lanes}u + lane;
  if (at >= sizes.units) { return; }
  let unit = at % ${width}u;
  let k = (at / ${width}u)${outer === 1 ? "" : ` % ${count}u`};
  let block = ${outer === 1 ? "0u" : `at / ${width * count}u`};
`;

/**
 * Scatter-add without sorting: for each group of equal indices, the invocation of the first of these indices searches
 * for all later ones and adds their updates. Cost: count² index reads per unit of a row.
 */
export const scatterAddDirectPass = (sizes: IndexedSizes): Pass => {
  const { width } = rowUnits(sizes.inner);
  return {
    label: "scatter-add direct",
    bindings: [indices, ...floats(sizes.inner)],
    workgroupSize: lanes,
    groups: Math.ceil((sizes.outer * sizes.count * width) / lanes),
    sizes: uniformSizes(sizes, width),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        ${decode(sizes, width)}
        let row = indices[k];
        if (row >= sizes.rows) { return; }
        for (var j = 0u; j < k; j++) { if (indices[j] == row) { return; } }
        let target_unit = (block * sizes.rows + row) * ${width}u + unit;
        var sum = y[target_unit];
        for (var j = k; j < sizes.count; j++) { if (indices[j] == row) { sum += updates[(block * sizes.count + j) * ${width}u + unit]; } }
        y[target_unit] = sum;
      }
    `,
  };
};

/**
 * Scatter-add of updates in stable sorted order. For a run of equal indices, the invocation of the first index finds
 * the end of the run and sums all updates of the run.
 */
const addRunsPass = (sizes: IndexedSizes, order: BindingSource): Pass => {
  const { width } = rowUnits(sizes.inner);
  const ahead = Array.from({ length: loadsAhead }, (_, i) => i);
  return {
    label: "scatter-add sorted",
    bindings: [indices, { name: "order", type: "array<u32>", source: order, access: "read" }, ...floats(sizes.inner)],
    workgroupSize: lanes,
    groups: Math.ceil((sizes.outer * sizes.count * width) / lanes),
    sizes: uniformSizes(sizes, width),
    code: wgsl`
      fn row_of(k: u32) -> u32 { return indices[order[k]]; }
      fn main(group: u32, lane: u32) {
        ${decode(sizes, width)}
        let row = row_of(k);
        if (row >= sizes.rows) { return; }
        if (k > 0u) { if (row_of(k - 1u) == row) { return; } }
        var step = 1u;
        loop {
          if (k + step >= sizes.count) { break; }
          if (row_of(k + step) != row) { break; }
          step *= 2u;
        }
        var last = k + step / 2u;
        var end = min(k + step, sizes.count);
        while (end - last > 1u) {
          let middle = last + (end - last) / 2u;
          if (row_of(middle) == row) { last = middle; } else { end = middle; }
        }
        let target_unit = (block * sizes.rows + row) * ${width}u + unit;
        let first = block * sizes.count;
        var sum = y[target_unit];
        var j = k;
        for (; j + ${loadsAhead}u <= end; j += ${loadsAhead}u) {
          ${ahead.map((i) => `let u${i} = updates[(first + order[j + ${i}u]) * ${width}u + unit];`)}
          ${ahead.map((i) => `sum += u${i};`)}
        }
        for (; j < end; j++) { sum += updates[(first + order[j]) * ${width}u + unit]; }
        y[target_unit] = sum;
      }
    `,
  };
};

/**
 * Sorts the updates by row index, then adds each run of updates with equal indices. Cost: `stableOrderPasses`, then one
 * read of each update and one read and write of each updated row.
 */
export const scatterAddSorted = (sizes: IndexedSizes): KernelPlan => {
  const { passes, scratch, order } = stableOrderPasses({ input: 1 }, sizes.count, sizes.size, 0);
  return { scratch, passes: [...passes, addRunsPass(sizes, order)] };
};

/**
 * Scatter-add of integers with atomics, because signed and unsigned sums do not depend on the order of additions. Cost:
 * each update is read once.
 */
export const scatterAddIntegersPass = (sizes: IndexedSizes): Pass => {
  const { outer, inner, count } = sizes;
  return {
    label: "scatter-add integers",
    bindings: [
      indices,
      { name: "updates", type: "array<u32>", source: { input: 2 }, access: "read" },
      { name: "y", type: "array<atomic<u32>>", source: { output: 0 }, access: "write" },
    ],
    workgroupSize: lanes,
    groups: Math.ceil((outer * count * inner) / lanes),
    sizes: uniformSizes(sizes, inner),
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${lanes}u + lane;
        if (at >= sizes.units) { return; }
        let row = indices[(at / ${inner}u)${outer === 1 ? "" : ` % ${count}u`}];
        if (row >= sizes.rows) { return; }
        let block = ${outer === 1 ? "0u" : `at / ${inner * count}u`};
        atomicAdd(&y[(block * sizes.rows + row) * ${inner}u + at % ${inner}u], updates[at]);
      }
    `,
  };
};

/** Maximum number of index reads for which the variant without sorting is cheaper than the dozen passes of a sort. */
const maxComparisons = 2 ** 22;

/** Chooses the scatter-add variant for float updates by their sizes. */
export const scatterAddFloats = (sizes: IndexedSizes): KernelPlan =>
  sizes.count ** 2 * sizes.outer * rowUnits(sizes.inner).width <= maxComparisons
    ? { passes: [scatterAddDirectPass(sizes)] }
    : scatterAddSorted(sizes);
