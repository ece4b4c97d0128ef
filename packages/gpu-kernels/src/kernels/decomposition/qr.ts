import type { BindingSource, KernelPlan, Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";
import { infinite, largestPass, scaleFunctions } from "./finite.ts";

// Sizes of a QR factorization by reflections 1 − v vᵀ with |v|² = 2, sixteen at a time. A workgroup computes the
// reflections of sixteen columns. Then all later columns are reflected, sixteen per workgroup, without a barrier
// between workgroups. Vectors are on and below the diagonal of the scaled matrix in scratch memory. The entries above
// the diagonal belong to r, whose diagonal is stored separately.

export interface QrSizes {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
}

/** Number of columns per block, and number of invocations per column. Adjacent invocations process adjacent columns. */
const width = 16;
const lanes = width * width;

const work: BindingSource = { scratch: 0 };
const diagonal: BindingSource = { scratch: 1 };
const info: BindingSource = { scratch: 2 };

// Number of words of `info` per matrix: the maximum magnitude, and whether it is finite.
const words = 2;

const fillPass = ({ batch, rows, columns }: QrSizes): Pass => ({
  label: "qr fill",
  bindings: [
    { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
    { name: "info", type: "array<u32>", source: info, access: "read" },
    { name: "work", type: "array<f32>", source: work, access: "write" },
  ],
  workgroupSize: lanes,
  groups: Math.ceil((batch * rows * columns) / lanes),
  sizes: { each: rows * columns, count: batch * rows * columns },
  code: wgsl`
    ${scaleFunctions}
    fn main(group: u32, lane: u32) {
      let at = group * ${lanes}u + lane;
      if (at >= sizes.count) { return; }
      let bits = info[at / sizes.each * ${words}u];
      if (bits < ${infinite}) { work[at] = a[at] * scale_of(bits); } else { work[at] = 0.0; }
    }
  `,
});

/**
 * WGSL of `fn sum_over(lane, x) -> f32`, which sums x over the invocations that share a column, and of `fn
 * first_row(least, part)`, which returns the first row ≥ `least` that an invocation owns. An invocation owns the same
 * rows for every reflection, so no other invocation waits for its writes.
 */
const sumFunction = wgsl`
  fn first_row(least: u32, part: u32) -> u32 { return least + (part + ${width}u - least % ${width}u) % ${width}u; }
  var<workgroup> parts: array<f32, ${lanes}>;
  fn sum_over(lane: u32, x: f32) -> f32 {
    workgroupBarrier();
    parts[lane] = x;
    workgroupBarrier();
    var sum = 0.0;
    for (var part = 0u; part < ${width}u; part++) { sum += parts[part * ${width}u + lane % ${width}u]; }
    return sum;
  }
`;

/** Computes the reflections of a block of columns: one workgroup per matrix. */
const panelPass = ({ batch, rows, columns }: QrSizes, first: number): Pass => ({
  label: "qr panel",
  bindings: [
    { name: "work", type: "array<f32>", source: work, access: "write" },
    { name: "diagonal", type: "array<f32>", source: diagonal, access: "write" },
  ],
  workgroupSize: lanes,
  groups: batch,
  sizes: { n: rows, m: columns, first, count: Math.min(width, columns - first) },
  code: wgsl`
    ${sumFunction}
    var<workgroup> top: f32;
    var<workgroup> rest: f32;
    fn main(group: u32, lane: u32) {
      let base = group * sizes.n * sizes.m + sizes.first;
      let column = lane % ${width}u;
      let part = lane / ${width}u;
      let there = column < sizes.count;
      for (var j = 0u; j < sizes.count; j++) {
        let k = sizes.first + j;
        var sum = 0.0;
        if (column == j) {
          for (var i = first_row(k + 1u, part); i < sizes.n; i += ${width}u) {
            let x = work[base + i * sizes.m + j];
            sum = fma(x, x, sum);
          }
        }
        sum = sum_over(lane, sum);
        if (lane == j) {
          rest = sum;
          top = work[base + k * sizes.m + j];
        }
        workgroupBarrier();
        let length = sqrt(fma(top, top, rest));
        // Where all below is zero nothing is reflected.
        var scale = 0.0;
        if (rest > 0.0) { scale = 1.0 / sqrt(length * (length + abs(top))); }
        if (column == j) {
          for (var i = first_row(k, part); i < sizes.n; i += ${width}u) {
            var x = work[base + i * sizes.m + j];
            if (i == k) { x += select(length, -length, top < 0.0); }
            work[base + i * sizes.m + j] = x * scale;
          }
        }
        if (lane == j) {
          diagonal[group * sizes.m + k] = select(top, select(-length, length, top < 0.0), rest > 0.0);
        }
        storageBarrier();
        workgroupBarrier();
        sum = 0.0;
        if (column > j && there) {
          for (var i = first_row(k, part); i < sizes.n; i += ${width}u) {
            sum = fma(work[base + i * sizes.m + j], work[base + i * sizes.m + column], sum);
          }
        }
        sum = sum_over(lane, sum);
        if (column > j && there) {
          for (var i = first_row(k, part); i < sizes.n; i += ${width}u) {
            let at = base + i * sizes.m + column;
            work[at] = fma(-sum, work[base + i * sizes.m + j], work[at]);
          }
        }
        storageBarrier();
        workgroupBarrier();
      }
    }
  `,
});

/**
 * Applies a block's reflections to the later columns of the matrix or, if `forQ`, in reverse order to the columns of q
 * from the block's first column on.
 */
const reflectPass = ({ batch, rows, columns }: QrSizes, first: number, forQ: boolean): Pass => {
  const count = Math.min(width, columns - first);
  const begin = forQ ? first : first + count;
  const groups = Math.ceil((columns - begin) / width);
  const target = forQ ? "q" : "work";
  return {
    label: forQ ? "qr columns of q" : "qr columns behind a panel",
    bindings: [
      ...(forQ ? ([{ name: "q", type: "array<f32>", source: { output: 0 }, access: "write" }] as const) : []),
      { name: "work", type: "array<f32>", source: work, access: forQ ? "read" : "write" },
    ],
    workgroupSize: lanes,
    groups: batch * groups,
    sizes: { n: rows, m: columns, first, count, begin, groups },
    code: wgsl`
      ${sumFunction}
      fn main(group: u32, lane: u32) {
        let base = group / sizes.groups * sizes.n * sizes.m;
        let column = sizes.begin + group % sizes.groups * ${width}u + lane % ${width}u;
        let part = lane / ${width}u;
        for (var step = 0u; step < sizes.count; step++) {
          let k = sizes.first + ${forQ ? "sizes.count - 1u - step" : "step"};
          var sum = 0.0;
          if (column < sizes.m) {
            for (var i = first_row(k, part); i < sizes.n; i += ${width}u) {
              let row = base + i * sizes.m;
              sum = fma(work[row + k], ${target}[row + column], sum);
            }
          }
          sum = sum_over(lane, sum);
          if (column < sizes.m) {
            for (var i = first_row(k, part); i < sizes.n; i += ${width}u) {
              let row = base + i * sizes.m;
              ${target}[row + column] = fma(-sum, work[row + k], ${target}[row + column]);
            }
          }
        }
      }
    `,
  };
};

/** Writes r with a nonnegative diagonal, and initializes q with the corresponding signs. */
const finishPass = ({ batch, rows, columns }: QrSizes): Pass => ({
  label: "qr triangle",
  bindings: [
    { name: "work", type: "array<f32>", source: work, access: "read" },
    { name: "diagonal", type: "array<f32>", source: diagonal, access: "read" },
    { name: "info", type: "array<u32>", source: info, access: "read" },
    { name: "q", type: "array<f32>", source: { output: 0 }, access: "write" },
    { name: "r", type: "array<f32>", source: { output: 1 }, access: "write" },
  ],
  workgroupSize: lanes,
  groups: Math.ceil((batch * rows * columns) / lanes),
  sizes: { n: rows, m: columns, count: batch * rows * columns },
  code: wgsl`
    ${scaleFunctions}
    fn main(group: u32, lane: u32) {
      let at = group * ${lanes}u + lane;
      if (at >= sizes.count) { return; }
      let matrix = at / (sizes.n * sizes.m);
      let i = at / sizes.m % sizes.n;
      let j = at % sizes.m;
      let bits = info[matrix * ${words}u];
      let finite = bits < ${infinite};
      var sign = 0.0;
      var pivot = 0.0;
      if (i < sizes.m) {
        pivot = diagonal[matrix * sizes.m + i];
        sign = select(1.0, -1.0, pivot < 0.0);
        var x = 0.0;
        if (i < j) { x = sign * work[at] * unscale_of(bits); }
        if (i == j) { x = abs(pivot) * unscale_of(bits); }
        if (!finite) { x = not_a_number(); }
        r[(matrix * sizes.m + i) * sizes.m + j] = x;
      }
      var start = 0.0;
      if (i == j) { start = sign; }
      if (!finite) { start = not_a_number(); }
      q[at] = start;
    }
  `,
});

/**
 * Returns the plan of the thin QR factors of `batch` matrices [rows, columns]. Three passes per block of 16 columns.
 * Matrices are read and written once per reflection, from caches if they fit.
 */
export const qrPlan = (sizes: QrSizes): KernelPlan => {
  const { batch, rows, columns } = sizes;
  const blocks = Array.from({ length: Math.ceil(columns / width) }, (_, block) => block * width);
  return {
    scratch: [4 * batch * rows * columns, 4 * batch * columns, 4 * words * batch],
    passes: [
      largestPass({ batch, rows, columns, lower: false, info, words }),
      fillPass(sizes),
      ...blocks.flatMap((first) => [
        panelPass(sizes, first),
        ...(first + width < columns ? [reflectPass(sizes, first, false)] : []),
      ]),
      finishPass(sizes),
      ...blocks.toReversed().map((first) => reflectPass(sizes, first, true)),
    ],
  };
};
