import type { TensorSpec } from "@skein/tensor-core";
import type { DeviceFacts, KernelPlan, Pass } from "../../kernel.ts";
import {
  blocksForTiles,
  type ColumnSums,
  type ColumnTerms,
  partialBinding,
  partialBytes,
  sumBlocks,
  tileSums,
} from "./column-sums.ts";
import { powerOfTwoAbove } from "../power-of-two.ts";
import { type RowLayout, rowLayout, shuffledLanes } from "./row-layout.ts";
import { rowPass } from "./row-passes.ts";
import { planWith, rowsOf } from "./row-plan.ts";
import { type RowProgram, vectorWidth } from "./row-program.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Kind of normalization, and row length in `columns`. If `centred`, `layer-norm`: the mean is subtracted and β is
 * added. If not, `rms-norm`.
 */
export interface NormKind {
  readonly centred: boolean;
  readonly columns: number;
}

/**
 * Ratio of the mean to the standard deviation above which the rounding error of the mean is corrected. Below this
 * ratio, the rounding error is about 1e-6 of a standard deviation.
 */
const farFromZero = "16.0";

/** Returns WGSL of x̂, the normalized x, for vector `id`. The rounding error of the mean is not corrected. */
const normal = ({ centred }: NormKind, id: string): string => (centred ? `(x${id} - center) * rstd` : `x${id} * rstd`);

/**
 * Returns WGSL of x̂, the normalized x, for vector `id`. `rest`, the rounding error of the row's mean, is corrected.
 */
const exactNormal = (kind: NormKind, id: string): string =>
  kind.centred ? `((x${id} - center) - rest) * rstd` : normal(kind, id);

/** Returns the operands with one entry per row, which are statistics of the forward pass. */
const rowInputs = ({ centred }: NormKind): RowProgram["inputs"] => [
  ...(centred ? [{ name: "means", per: "row" as const, source: { input: 2 } }] : []),
  { name: "rstds", per: "row", source: { input: centred ? 3 : 2 } },
];

const prologue = ({ centred }: NormKind): string => wgsl`
  ${centred ? "let center = values(means[row]);" : ""}
  let rstd = rstds[row];
`;

/**
 * Returns the program of `dx = rstd · (h − Σh/D − x̂ · Σ(h·x̂)/D)` with h = g·γ and row length D. The term Σh is absent
 * if the normalization is not centred. `rest`, the mean of x − mean, corrects x̂ for the rounding error of the mean,
 * which is a large fraction of a standard deviation if a row is far from zero.
 *
 * @param restsAt Index of the scratch block for `rest` of each row. Absent: `rest` is not stored.
 */
export const normBackwardProgram = (kind: NormKind, restsAt?: number): RowProgram => {
  const { centred, columns } = kind;
  const gradient = (id: string): string => `let h${id} = g${id} * gamma[c${id}];`;
  return {
    label: centred ? "layer-norm-backward" : "rms-norm-backward",
    inputs: [
      { name: "x", per: "element", source: { input: 0 } },
      { name: "g", per: "element", source: { input: centred ? 4 : 3 } },
      { name: "gamma", per: "column", source: { input: 1 } },
      ...rowInputs(kind),
    ],
    outputs: [
      { name: "dx", per: "element", source: { output: 0 } },
      ...(restsAt === undefined ? [] : [{ name: "rests", per: "row" as const, source: { scratch: restsAt } }]),
    ],
    prologue: prologue(kind),
    statistics: {
      fields: ["sum", "product", ...(centred ? ["rest"] : [])],
      begin: `var seen_sum = values(); var seen_product = values(); ${centred ? "var seen_rest = values();" : ""}`,
      accumulate: (ids) => wgsl`
        {
          ${ids.map(gradient)}
          ${centred ? `seen_sum += ${ids.map((id) => `h${id}`).join(" + ")};` : ""}
          ${centred ? `seen_rest += ${ids.map((id) => `(x${id} - center)`).join(" + ")};` : ""}
          seen_product += ${ids.map((id) => `h${id} * (${normal(kind, id)})`).join(" + ")};
        }
      `,
      settle: `State(total(seen_sum), total(seen_product)${centred ? ", total(seen_rest)" : ""})`,
      join: centred
        ? wgsl`
          let sums = row_sum2(lane, vec2<f32>(own.sum, own.product));
          return State(sums.x, sums.y, row_sum(lane, own.rest));
        `
        : "return State(0.0, row_sum(lane, own.product));",
    },
    row: centred
      ? wgsl`
        let is_far = abs(entry_of(center, 0u)) * rstd > ${farFromZero};
        let row_rest = select(0.0, state.rest / ${columns}.0, is_far);
        let rest = values(row_rest);
        let factor = -rstd * rstd * (state.product - row_rest * rstd * state.sum) / ${columns}.0;
        let term = values(-rstd * state.sum / ${columns}.0 - row_rest * factor);
      `
      : `let factor = -rstd * rstd * state.product / ${columns}.0;`,
    ...(restsAt !== undefined && { perRow: "rests[row] = row_rest;" }),
    finish: (id) => wgsl`
      {
        ${gradient(id)}
        dx[at${id}] = h${id} * rstd + ${centred ? `((x${id} - center) * factor + term)` : `x${id} * factor`};
      }
    `,
  };
};

/** Number of floats per operand that a lane keeps in registers. The registers hold x, g, γ and the sums. */
const floatsPerLane = 16;

/**
 * Returns the number of lanes per row and the number of row blocks, or undefined if a row does not fit in registers.
 */
export const blockLayout = (
  rows: number,
  columns: number,
  facts: DeviceFacts,
): { layout: RowLayout; rowsEach: number; blocks: number } | undefined => {
  const width = vectorWidth(columns);
  const vectors = columns / width;
  const perLane = floatsPerLane / width;
  const shuffled = shuffledLanes(facts);
  let lanes = powerOfTwoAbove(Math.ceil(vectors / perLane));
  if (!facts.software) lanes = Math.max(lanes, Math.min(8, powerOfTwoAbove(vectors)));
  const workgroupSize = Math.max(lanes, 256);
  if (workgroupSize > Math.min(512, facts.maxWorkgroupSize)) return undefined;
  const together = workgroupSize / lanes;
  // Enough blocks to keep the device busy, but few enough that combining sums within and between blocks is a small part
  // of the work.
  const blocksWanted = facts.software
    ? Math.min(64, Math.max(8, Math.ceil(rows / 512)))
    : Math.min(512, Math.max(128, Math.ceil(rows / 16)));
  const wanted = Math.min(Math.ceil(rows / together), blocksWanted);
  const rowsEach = Math.ceil(rows / together / wanted);
  return {
    layout: { width, columns: vectors, lanes, workgroupSize, shuffled, parts: 1, kind: "resident" },
    rowsEach,
    blocks: Math.ceil(rows / together / rowsEach),
  };
};

/** Computes dx of a block of rows and the block's column sums. Reads x and g once. */
const blockPass = (kind: NormKind, layout: RowLayout, rowsEach: number, sums: ColumnSums, rows: number): Pass => {
  const program = normBackwardProgram(kind);
  const { lanes, workgroupSize, columns } = layout;
  const together = workgroupSize / lanes;
  const count = Math.ceil(columns / lanes);
  const tail = columns % lanes > 0 ? String(count - 1) : undefined;
  const ids = Array.from({ length: count }, (_, i) => String(i));
  const full = ids.filter((id) => id !== tail);
  const terms = kind.centred ? ["scale", "shift"] : ["scale"];
  const guarded = (id: string, text: string): string =>
    id !== tail
      ? text
      : wgsl`
        if (in_tail) {
          ${text}
        }
      `;
  const { begin, accumulate, settle } = program.statistics!;
  // A loop whose length the compiler does not know. If the loop were unrolled, its barriers would take seconds to
  // compile on software adapters.
  const combine =
    together === 1
      ? ""
      : wgsl`
        for (var half = sizes.together / 2u; half > 0u; half /= 2u) {
          ${terms.map(
            (term) => wgsl`
              workgroupBarrier();
              if (cluster >= half && cluster < 2u * half) {
                ${ids.map((id, i) => `handed[${(i * workgroupSize) / 2}u + lane - half * ${lanes}u] = ${term}${id};`)}
              }
              workgroupBarrier();
              if (cluster < half) {
                ${ids.map((id, i) => `${term}${id} += handed[${(i * workgroupSize) / 2}u + lane];`)}
              }
            `,
          )}
        }
      `;
  const store = (term: string, at: number): string[] =>
    ids.map((id) =>
      guarded(id, `block_sums[(group * ${terms.length}u + ${at}u) * ${columns}u + c${id}] = ${term}${id};`),
    );
  const body = wgsl`
    let cluster = lane / ${lanes}u;
    let own = lane % ${lanes}u;
    ${ids.map((id, i) => `let c${id} = own + ${i * lanes}u;`)}
    ${tail === undefined ? "" : `let in_tail = c${tail} < ${columns}u;`}
    ${ids.flatMap((id) => terms.map((term) => `var ${term}${id} = values();`))}
    for (var turn = 0u; turn < ${rowsEach}u; turn++) {
      let wanted = (group * ${rowsEach}u + turn) * ${together}u + cluster;
      let live = wanted < sizes.rows;
      let row = min(wanted, sizes.rows - 1u);
      let base = row * ${columns}u;
      ${program.prologue!}
      ${ids.map(
        (id) => wgsl`
          let at${id} = base + c${id};
          var x${id}: values;
          var g${id}: values;
          ${guarded(id, `x${id} = x[at${id}]; g${id} = g[at${id}];`)}
        `,
      )}
      ${begin}
      ${full.length > 0 ? accumulate(full) : ""}
      ${tail === undefined ? "" : guarded(tail, accumulate([tail]))}
      let state = join(lane, ${settle});
      ${program.row!}
      if (live) {
        ${ids.map((id) =>
          guarded(
            id,
            wgsl`
              ${program.finish!(id)}
              scale${id} += g${id} * (${exactNormal(kind, id)});
              ${kind.centred ? `shift${id} += g${id};` : ""}
            `,
          ),
        )}
      }
    }
    ${combine}
    if (cluster == 0u) {
      ${terms.flatMap(store)}
    }
  `;
  const pass = rowPass(
    program,
    layout,
    sums.blocks,
    rows,
    `${lanes} lanes, ${rowsEach * together} rows a block`,
    body,
    [partialBinding(sums, "write")],
  );
  return together === 1
    ? pass
    : {
        ...pass,
        sizes: { rows, together },
        code: wgsl`
          var<workgroup> handed: array<values, ${(count * workgroupSize) / 2}>;
          ${pass.code}
        `,
      };
};

/**
 * Returns the terms of the column sums, for rows that do not fit in registers: x̂·g of each element, and g if the
 * normalization is centred.
 */
const columnTerms = (kind: NormKind, restsAt: number): ColumnTerms => ({
  bindings: [
    { name: "x", per: "element", source: { input: 0 } },
    { name: "g", per: "element", source: { input: kind.centred ? 4 : 3 } },
    ...rowInputs(kind).map(({ name, source }) => ({ name, per: "row" as const, source })),
    ...(kind.centred ? [{ name: "rests", per: "row" as const, source: { scratch: restsAt } }] : []),
  ],
  prologue: `${prologue(kind)} ${kind.centred ? "let rest = values(rests[row]);" : ""} let x0 = x[at]; let g0 = g[at];`,
  terms: [`g0 * (${exactNormal(kind, "0")})`, ...(kind.centred ? ["g0"] : [])],
});

/**
 * Returns the plan of the gradients of a normalization: dx of each row, and for γ (and β) the sums over rows, in two
 * steps with a fixed order. Rows of up to 4096 entries are read once; longer rows are read two more times.
 */
export const normBackwardPlan = (centred: boolean, x: TensorSpec, facts: DeviceFacts): KernelPlan => {
  const { rows, columns } = rowsOf(x);
  const width = vectorWidth(columns);
  const label = centred ? "layer-norm-backward" : "rms-norm-backward";
  const outputs = centred ? [1, 2] : [1];
  const sumsOf = (blocks: number, partials: number): ColumnSums => ({
    width,
    columns: columns / width,
    blocks,
    partials,
    outputs,
  });
  if (rows === 0) return { scratch: [16], passes: [sumBlocks(label, sumsOf(0, 0))] };
  const kind: NormKind = { centred, columns };
  const block = blockLayout(rows, columns, facts);
  if (block !== undefined) {
    const sums = sumsOf(block.blocks, 0);
    return {
      scratch: [partialBytes(sums)],
      passes: [blockPass(kind, block.layout, block.rowsEach, sums, rows), sumBlocks(label, sums)],
    };
  }
  const layout = rowLayout(columns, facts, true);
  const { scratch = [] } = planWith(normBackwardProgram(kind), layout, rows);
  const restsAt = scratch.length;
  const restBytes = centred ? [4 * rows] : [];
  const { passes } = planWith(normBackwardProgram(kind, centred ? restsAt : undefined), layout, rows);
  const sums = sumsOf(blocksForTiles(rows, columns / width, facts), restsAt + restBytes.length);
  return {
    scratch: [...scratch, ...restBytes, partialBytes(sums)],
    passes: [...passes, tileSums(label, columnTerms(kind, restsAt), sums, rows), sumBlocks(label, sums)],
  };
};
