import type { DType } from "@skein/tensor-core";
import { rowMajorStrides } from "@skein/tensor-core/backend";
import { bindingType, loadFunction } from "../../storage.ts";
import { unpackVector, vectorBinding, vectorType } from "./vectors.ts";

// Reads of broadcast operands: the invocation that computes elements 4·at … 4·at+3 of the result reads the
// corresponding elements. The operands share one division, which computes the row and the column of the first element.
// More divisions are needed only if rows have several dimensions.

/** WGSL that reads one operand. */
export interface OperandRead {
  /** WGSL type of the operand's binding. */
  readonly type: string;
  /** WGSL of the functions that `expression` calls. */
  readonly functions: string;
  /** Form of the index variables that `expression` uses. `walkOf` declares these variables. */
  readonly walk: "none" | "rows" | "straddled rows";
  /** WGSL expression of four operand values, as a vector. */
  readonly expression: string;
}

const isDense = (shape: readonly number[], strides: readonly number[]): boolean => {
  const dense = rowMajorStrides(shape);
  return strides.every((stride, dim) => shape[dim] === 1 || stride === dense[dim]);
};

/**
 * Returns WGSL of the offset in an operand for flat index `at` over `shape`. Does not depend on the size of the first
 * dimension.
 */
const offsetOf = (shape: readonly number[], strides: readonly number[], at: string): string => {
  const steps = rowMajorStrides(shape);
  const terms = shape.flatMap((size, dim) => {
    if (size === 1 || strides[dim] === 0) return [];
    const quotient = steps[dim] === 1 ? at : `${at} / ${steps[dim]}u`;
    const index = dim === 0 ? quotient : `(${quotient}) % ${size}u`;
    return [strides[dim] === 1 ? `(${index})` : `(${index}) * ${strides[dim]}u`];
  });
  return terms.length === 0 ? "0u" : terms.join(" + ");
};

/**
 * Returns WGSL that declares the index variables of the four elements at vector index `at`.
 *
 * - `none`: no variables.
 * - `rows`: `row`, and `column` in vectors. Rows consist of complete vectors.
 * - `straddled rows`: `row` of the first element, `beyond` (whether each element is in the next row), and `column` of
 *   each element.
 */
export const walkOf = (shape: readonly number[], walk: OperandRead["walk"]): string[] => {
  const columns = shape.at(-1)!;
  if (walk === "none") return [];
  if (walk === "rows") return [`let row = at / ${columns / 4}u;`, `let column = at - row * ${columns / 4}u;`];
  return [
    `let row = 4u * at / ${columns}u;`,
    `let ahead = vec4<u32>(4u * at - row * ${columns}u) + vec4<u32>(0u, 1u, 2u, 3u);`,
    `let beyond = ahead >= vec4<u32>(${columns}u);`,
    `let column = select(ahead, ahead - vec4<u32>(${columns}u), beyond);`,
  ];
};

/**
 * Returns WGSL that reads operand `name` through a view. Elements after the last have undefined values; WebGPU keeps
 * these reads inside the binding.
 *
 * @param strides Stride in elements of each dimension of `shape`; 0 for broadcast dimensions.
 */
export const readOperand = (
  name: string,
  dtype: DType,
  shape: readonly number[],
  strides: readonly number[],
): OperandRead => {
  const vector = vectorType(dtype);
  if (isDense(shape, strides))
    return { type: vectorBinding(dtype), functions: "", walk: "none", expression: unpackVector(`${name}[at]`, dtype) };

  const scalar = { type: bindingType(dtype), functions: loadFunction(name, dtype) };
  const lanes = (index: (lane: string) => string): string =>
    `${vector}(${["x", "y", "z", "w"].map((lane) => `load_${name}(${index(lane)})`).join(", ")})`;
  const columns = shape.at(-1)!;
  const [outerShape, outer] = [shape.slice(0, -1), strides.slice(0, -1)];
  const step = strides.at(-1)!;
  const oneRow = outer.every((stride, dim) => stride === 0 || shape[dim] === 1);
  if (oneRow && (step === 0 || columns === 1))
    return { ...scalar, walk: "none", expression: `${vector}(load_${name}(0u))` };

  if (columns % 4 === 0) {
    if (step === 0)
      return { ...scalar, walk: "rows", expression: `${vector}(load_${name}(${offsetOf(outerShape, outer, "row")}))` };
    if (step === 1 && outer.every((stride) => stride % 4 === 0)) {
      const quarter = outer.map((stride) => stride / 4);
      const index = oneRow ? "column" : `${offsetOf(outerShape, quarter, "row")} + column`;
      return {
        type: vectorBinding(dtype),
        functions: "",
        walk: "rows",
        expression: unpackVector(`${name}[${index}]`, dtype),
      };
    }
  } else if (columns > 2) {
    // Four adjacent elements are in at most two rows.
    const [here, next] = [offsetOf(outerShape, outer, "row"), offsetOf(outerShape, outer, "(row + 1u)")];
    const walk = "straddled rows";
    if (step === 0)
      return {
        ...scalar,
        walk,
        expression: `select(${vector}(load_${name}(${here})), ${vector}(load_${name}(${next})), beyond)`,
      };
    if (oneRow) return { ...scalar, walk, expression: lanes((lane) => `column.${lane} * ${step}u`) };
    const start = `fn start_${name}(row: u32, beyond: vec4<bool>) -> vec4<u32> { return select(vec4<u32>(${here}), vec4<u32>(${next}), beyond); }`;
    return {
      ...scalar,
      functions: `${scalar.functions}\n${start}`,
      walk,
      expression: lanes((lane) => `start_${name}(row, beyond).${lane} + column.${lane} * ${step}u`),
    };
  }
  const index = `fn index_${name}(at: u32) -> u32 { return ${offsetOf(shape, strides, "at")}; }`;
  const each = ["0", "1", "2", "3"].map((lane) => `load_${name}(index_${name}(4u * at + ${lane}u))`);
  return {
    ...scalar,
    functions: `${scalar.functions}\n${index}`,
    walk: "none",
    expression: `${vector}(${each.join(", ")})`,
  };
};
