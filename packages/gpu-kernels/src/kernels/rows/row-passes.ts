import type { Pass } from "../../kernel.ts";
import type { RowLayout } from "./row-layout.ts";
import { elementNames, operandBindings, programFunctions, type RowProgram, vectorFunctions } from "./row-program.ts";
import { rowReductions } from "./row-reduce.ts";
import { wgsl } from "../../wgsl.ts";

/** Returns the complete WGSL of a pass over rows: `main` with the given body, and all functions that the body calls. */
export const rowPass = (
  program: RowProgram,
  layout: RowLayout,
  groups: number,
  rows: number,
  variant: string,
  body: string,
  extra: readonly Pass["bindings"][number][] = [],
): Pass => {
  const subgroups = layout.shuffled > 1;
  const functions = programFunctions(program);
  const subgroupParameters = subgroups ? ", subgroup_lane: u32, subgroup_size: u32" : "";
  const code = wgsl`
    var<private> never: u32 = 0u;
    ${vectorFunctions(layout.width)}
    ${rowReductions(functions + body, layout)}
    ${functions}
    fn main(group: u32, lane: u32${subgroupParameters}) {
      ${body}
    }
  `;
  return {
    label: `${program.label} ${variant}`,
    bindings: [...operandBindings(program, body, layout.width), ...extra],
    workgroupSize: layout.workgroupSize,
    groups,
    code,
    sizes: { rows },
    ...(subgroups ? { features: ["subgroups"] } : {}),
  };
};

/**
 * Returns WGSL that declares `live`, `row`, `row_columns` and `base` of a lane whose workgroup processes complete rows.
 * Lanes after the last row repeat the last row, so that barriers stay uniform.
 */
const wholeRows = ({ lanes, workgroupSize, columns }: RowLayout): string =>
  wgsl`
    let wanted = group * ${workgroupSize / lanes}u + lane / ${lanes}u;
    let live = wanted < sizes.rows;
    let row = min(wanted, sizes.rows - 1u);
    let row_columns = ${columns}u;
    let base = row * row_columns;
    let own = lane % ${lanes}u;
  `;

const rowGroups = ({ lanes, workgroupSize }: RowLayout, rows: number): number =>
  Math.ceil(rows / (workgroupSize / lanes));

/** Returns WGSL that loads vector `id` of each operand at column `column`. */
const load = (program: RowProgram, id: string, column: string): string =>
  wgsl`
    let c${id} = ${column};
    let at${id} = base + c${id};
    ${elementNames(program).map((name) => `let ${name}${id} = ${name}[at${id}];`)}
  `;

/** Returns WGSL of `body` under `condition`. Empty if `body` is empty. */
const conditional = (condition: string, body: string): string =>
  body === ""
    ? ""
    : wgsl`
      if (${condition}) {
        ${body}
      }
    `;

/** Runs a program with rows in registers: rows are read once and written once. Bytes: inputs + outputs, the minimum. */
export const residentPass = (program: RowProgram, layout: RowLayout, rows: number): Pass => {
  const { lanes, columns } = layout;
  const full = Math.floor(columns / lanes);
  const ids = Array.from({ length: full }, (_, i) => String(i));
  const tail = columns % lanes > 0 ? "t" : undefined;
  const names = elementNames(program);
  const { prologue = "", statistics, row = "", perRow = "", finish, finishResident = finish } = program;
  const collect =
    statistics?.resident?.(ids, tail) ??
    (statistics === undefined
      ? ""
      : wgsl`
        ${statistics.begin}
        ${ids.length > 0 ? statistics.accumulate(ids) : ""}
        ${tail === undefined ? "" : conditional("in_tail", statistics.accumulate([tail]))}
        let state = join(lane, ${statistics.settle});
      `);
  const loadTail = (): string => wgsl`
    let ct = own + ${full * lanes}u;
    let in_tail = ct < ${columns}u;
    let att = base + ct;
    ${names.map((name) => `var ${name}t: values;`)}
    if (in_tail) {
      ${names.map((name) => `${name}t = ${name}[att];`)}
    }
  `;
  const body = wgsl`
    ${wholeRows(layout)}
    ${prologue}
    ${ids.map((id, i) => load(program, id, `own + ${i * lanes}u`))}
    ${tail === undefined ? "" : loadTail()}
    ${collect}
    ${row}
    if (!live) { return; }
    ${conditional("own == 0u", perRow)}
    ${ids.map((id) => finishResident!(id))}
    ${tail === undefined ? "" : conditional("in_tail", finishResident!(tail))}
  `;
  return rowPass(program, layout, rowGroups(layout, rows), rows, `in registers, ${lanes} lanes`, body);
};

const unrolled = ["0", "1", "2", "3"];

/**
 * Returns WGSL that loads all vectors of a lane between columns `begin` and `end`, several at a time, and executes
 * `apply` for the loaded vectors.
 */
const forward = (
  program: RowProgram,
  { lanes }: RowLayout,
  begin: string,
  end: string,
  apply: (ids: readonly string[]) => string,
): string => {
  const last = unrolled.length - 1;
  return wgsl`
    var c = ${begin} + own;
    for (; c + ${last * lanes}u < ${end}; c += ${unrolled.length * lanes}u) {
      ${unrolled.map((id, i) => load(program, id, `c + ${i * lanes}u`))}
      ${apply(unrolled)}
    }
    for (; c < ${end}; c += ${lanes}u) {
      ${load(program, "0", "c")}
      ${apply(["0"])}
    }
  `;
};

/** Returns WGSL like `forward`, in reverse order, because the vectors that were read last are still in the cache. */
const backward = (
  program: RowProgram,
  { lanes }: RowLayout,
  begin: string,
  end: string,
  apply: (id: string) => string,
): string => {
  const count = unrolled.length;
  return wgsl`
    var left = (${end} - ${begin} + ${lanes - 1}u - own) / ${lanes}u;
    for (; left % ${count}u != 0u; left--) {
      ${load(program, "0", `${begin} + own + (left - 1u) * ${lanes}u`)}
      ${apply("0")}
    }
    for (; left > 0u; left -= ${count}u) {
      ${unrolled.map((id, i) => load(program, id, `${begin} + own + (left - ${i + 1}u) * ${lanes}u`))}
      ${unrolled.map(apply)}
    }
  `;
};

/**
 * Runs a row program that rereads rows from memory: one pass for row statistics, if the program has any, and one pass
 * for the elementwise results.
 */
export const streamedPass = (program: RowProgram, layout: RowLayout, rows: number): Pass => {
  const { prologue = "", statistics, row = "", perRow = "", finish } = program;
  const columns = `${layout.columns}u`;
  const collect =
    statistics === undefined
      ? ""
      : wgsl`
        ${statistics.begin}
        {
          ${forward(program, layout, "0u", columns, statistics.accumulate)}
        }
        let state = join(lane, ${statistics.settle});
      `;
  const body = wgsl`
    ${wholeRows(layout)}
    ${prologue}
    ${collect}
    ${row}
    if (!live) { return; }
    ${conditional("own == 0u", perRow)}
    ${finish === undefined ? "" : backward(program, layout, "0u", columns, finish)}
  `;
  return rowPass(program, layout, rowGroups(layout, rows), rows, `streamed, ${layout.lanes} lanes`, body);
};

/**
 * Returns WGSL that declares `row`, `row_columns`, `base`, and the column range `begin` … `end` of a workgroup that
 * processes one of the row's `parts`.
 */
const partOf = ({ parts, columns, lanes }: RowLayout): string => {
  const each = Math.ceil(columns / parts / lanes) * lanes;
  return wgsl`
    let row = group / ${parts}u;
    let part = group % ${parts}u;
    let row_columns = ${columns}u;
    let base = row * row_columns;
    let own = lane;
    let begin = min(part * ${each}u, ${columns}u);
    let end = min(begin + ${each}u, ${columns}u);
  `;
};

/** Computes the statistics of each part of a row, and writes them to `partials[row · parts + part]`. */
export const partialPass = (program: RowProgram, layout: RowLayout, rows: number): Pass => {
  const { begin, accumulate, settle, fields } = program.statistics!;
  const packed = [0, 1, 2, 3].map((i) => (fields[i] === undefined ? "0.0" : `joined.${fields[i]}`)).join(", ");
  const body = wgsl`
    ${partOf(layout)}
    ${program.prologue ?? ""}
    ${begin}
    {
      ${forward(program, layout, "begin", "end", accumulate)}
    }
    let joined = join(lane, ${settle});
    if (lane == 0u) { partials[group] = vec4<f32>(${packed}); }
  `;
  return rowPass(program, layout, rows * layout.parts, rows, `statistics of 1/${layout.parts} row`, body, [
    { name: "partials", type: "array<vec4<f32>>", source: { scratch: 0 }, access: "write" },
  ]);
};

/**
 * Computes the results of one part of a row from the statistics of all parts of the row. If the program has only
 * per-row results, one workgroup computes them for the complete row.
 */
export const applyPass = (program: RowProgram, layout: RowLayout, rows: number): Pass => {
  const { prologue = "", statistics, row = "", perRow = "", finish } = program;
  const unpacked = statistics?.fields.map((_, i) => `packed.${"xyzw"[i]}`).join(", ");
  const groupsPerRow = finish === undefined ? 1 : layout.parts;
  const joinParts =
    statistics === undefined
      ? ""
      : wgsl`
        ${statistics.begin}
        var part_state = ${statistics.settle};
        if (lane < ${layout.parts}u) {
          let packed = partials[row * ${layout.parts}u + lane];
          part_state = State(${unpacked!});
        }
        let state = join(lane, part_state);
      `;
  const body = wgsl`
    ${partOf({ ...layout, parts: groupsPerRow })}
    ${prologue}
    ${joinParts}
    ${row}
    ${conditional("lane == 0u && part == 0u", perRow)}
    ${finish === undefined ? "" : backward(program, layout, "begin", "end", finish)}
  `;
  return rowPass(
    program,
    layout,
    rows * groupsPerRow,
    rows,
    `results of 1/${layout.parts} row`,
    body,
    statistics === undefined
      ? []
      : [{ name: "partials", type: "array<vec4<f32>>", source: { scratch: 0 }, access: "read" }],
  );
};
