import type { Binding, BindingSource } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

/** Operand of a row kernel, with one entry per element, per column (the same for all rows), or per row. */
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
  /** WGSL of functions and constants of this program. */
  readonly functions?: string;
  /** WGSL statements before elements are loaded. May use `row`. */
  readonly prologue?: string;
  /** Statistics that a lane computes from its vectors. Absent: rows need no statistics. */
  readonly statistics?: {
    /** Names of the f32 fields of `State`, at most four. */
    readonly fields: readonly string[];
    /** WGSL declarations of `var`s, with initial values for a lane without elements. */
    readonly begin: string;
    readonly accumulate: (ids: readonly string[]) => string;
    /** WGSL expression of the lane's `State`. */
    readonly settle: string;
    /** WGSL body of `fn join(lane: u32, own: State) -> State`, which combines the states of a row's lanes. */
    readonly join: string;
    /**
     * Alternative computation if all vectors of a lane are in registers: WGSL statements that end with `let state`, and
     * may store values in registers. Absent: `accumulate` is used.
     */
    readonly resident?: (ids: readonly string[], tail: string | undefined) => string;
  };
  /** WGSL statements after `state` has been computed, before the elements of the row are written. */
  readonly row?: string;
  /** WGSL statements that one lane executes once per row. */
  readonly perRow?: string;
  /** WGSL statements that write vector `id`. Absent: the program has no results per element. */
  readonly finish?: (id: string) => string;
  /** WGSL statements that write vector `id` if the vectors are in registers. Absent: `finish` is used. */
  readonly finishResident?: (id: string) => string;
}

/**
 * Returns the number of elements that are loaded at once. The width divides the row length, so that all rows are
 * aligned.
 */
export const vectorWidth = (columns: number): 1 | 2 | 4 => (columns % 4 === 0 ? 4 : columns % 2 === 0 ? 2 : 1);

/**
 * Returns WGSL for vectors of `width` elements: type aliases, and functions that return the sum or the maximum of the
 * components.
 */
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

/** Returns the bindings of those operands of the program that `code` uses. */
export const operandBindings = ({ inputs, outputs }: RowProgram, code: string, width: 1 | 2 | 4): Binding[] => {
  const type = width === 1 ? "array<f32>" : `array<vec${width}<f32>>`;
  return [
    ...inputs.map((operand) => bindingOf(operand, "read")),
    ...outputs.map((operand) => bindingOf(operand, "write")),
  ]
    .filter(({ name }) => new RegExp(`\\b${name}\\[`).test(code))
    .map((binding) => (binding.type === "array<values>" ? { ...binding, type } : binding));
};

/** Returns the names of operands that are loaded vector by vector. */
export const elementNames = (program: RowProgram): string[] =>
  program.inputs.flatMap(({ name, per }) => (per === "element" ? [name] : []));

/** Returns WGSL of `struct State`, its empty value, `join`, and the functions of the program. */
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
