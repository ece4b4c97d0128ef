import type { Binding, BindingSource } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

/** An operand of a row kernel: one entry per element, per column (of all rows), or per row. */
export interface RowOperand {
  readonly name: string;
  readonly per: "element" | "column" | "row";
  readonly source: BindingSource;
  readonly type?: "f32" | "i32";
}

/**
 * An operator's computation on each row, independent of the distribution of rows over invocations. The WGSL processes a
 * row in vectors of type `values` (1, 2 or 4 elements). Vector `id` of a lane has column vector `c<id>`, index `at<id>`
 * in all elements, and operand registers `<operand><id>`.
 */
export interface RowProgram {
  readonly label: string;
  readonly inputs: readonly RowOperand[];
  readonly outputs: readonly RowOperand[];
  /** Functions and constants of this program. */
  readonly functions?: string;
  /** Statements before elements are loaded. May use `row`. */
  readonly prologue?: string;
  /** Statistics that a lane computes from its vectors. Absent: rows need no statistics. */
  readonly statistics?: {
    /** f32 fields of `State`, at most four. */
    readonly fields: readonly string[];
    /** Declarations of `var`s, initialized for a lane without elements. */
    readonly begin: string;
    readonly accumulate: (ids: readonly string[]) => string;
    /** Expression of the lane's `State`. */
    readonly settle: string;
    /** Body of `fn join(lane: u32, own: State) -> State`, which joins the states of a row's lanes. */
    readonly join: string;
    /**
     * Alternative computation if all of a lane's vectors are in registers: statements that end with `let state`, and
     * may store values in registers. Absent: `accumulate` is used.
     */
    readonly resident?: (ids: readonly string[], tail: string | undefined) => string;
  };
  /** Statements after `state` is known, before the row's elements are written. */
  readonly row?: string;
  /** Statements that one lane executes, once per `row`. */
  readonly perRow?: string;
  /** Statements that write vector `id`. Absent: there are no results per element. */
  readonly finish?: (id: string) => string;
  /** `finish` after `statistics.resident`. */
  readonly finishResident?: (id: string) => string;
}

/** Elements that are loaded at once. Rows whose length is not a multiple would not be aligned. */
export const vectorWidth = (columns: number): 1 | 2 | 4 => (columns % 4 === 0 ? 4 : columns % 2 === 0 ? 2 : 1);

/** Functions for vectors of `width` elements: types, sums and maxima over the components. */
export const vectorFunctions = (width: 1 | 2 | 4): string => {
  const [values, words] = width === 1 ? ["f32", "u32"] : [`vec${width}<f32>`, `vec${width}<u32>`];
  const over = (combine: (a: string, b: string) => string): string =>
    width === 1 ? "v" : width === 2 ? combine("v.x", "v.y") : combine(combine("v.x", "v.y"), combine("v.z", "v.w"));
  return wgsl`
    alias values = ${values};
    alias words = ${words};
    const vector_width = ${width}u;
    const entries = words(${["0u", "1u", "2u", "3u"].slice(0, width).join(", ")});
    fn entry_of(v: values, i: u32) -> f32 { return ${width === 1 ? "v" : "v[i]"}; }
    fn total(v: values) -> f32 { return ${over((a, b) => `(${a} + ${b})`)}; }
    fn highest(v: values) -> f32 { return ${over((a, b) => `max(${a}, ${b})`)}; }
    fn highest_word(v: words) -> u32 { return ${over((a, b) => `max(${a}, ${b})`)}; }
  `;
};

const bindingOf = ({ name, per, source, type = "f32" }: RowOperand, access: "read" | "write"): Binding => ({
  name,
  type: per === "row" ? `array<${type}>` : "array<values>",
  source,
  access,
});

/** Bindings of the operands that `code` uses. */
export const operandBindings = ({ inputs, outputs }: RowProgram, code: string, width: 1 | 2 | 4): Binding[] => {
  const type = width === 1 ? "array<f32>" : `array<vec${width}<f32>>`;
  return [
    ...inputs.map((operand) => bindingOf(operand, "read")),
    ...outputs.map((operand) => bindingOf(operand, "write")),
  ]
    .filter(({ name }) => new RegExp(`\\b${name}\\[`).test(code))
    .map((binding) => (binding.type === "array<values>" ? { ...binding, type } : binding));
};

/** Names of operands that are loaded vector by vector. */
export const elementNames = (program: RowProgram): string[] =>
  program.inputs.flatMap(({ name, per }) => (per === "element" ? [name] : []));

/** `struct State`, its empty value, `join`, and the program's own functions. */
export const programFunctions = ({ statistics, functions = "" }: RowProgram): string =>
  statistics === undefined
    ? functions
    : wgsl`
      struct State { ${statistics.fields.map((field) => `${field}: f32`).join(", ")} }
      ${functions}
      fn join(lane: u32, own: State) -> State {
        ${statistics.join}
      }
    `;
