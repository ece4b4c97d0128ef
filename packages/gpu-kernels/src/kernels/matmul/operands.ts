import type { Binding } from "../../kernel.ts";
import { type Product, range } from "./product.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * WGSL that reads an operand of a product. Both operands have the same interface: an *outer* dimension (rows of a,
 * columns of b) and the inner dimension. One of the two dimensions is contiguous in memory.
 */
export interface Operand {
  readonly binding: Binding;
  /** Whether the inner dimension is contiguous in memory: true for an untransposed a and a transposed b. */
  readonly innerContiguous: boolean;
  /**
   * WGSL of two functions:
   * - `fn fetch_x(base: u32, outer: u32, k: u32) -> mat4x4<f32>`: column j holds elements outer … outer+3 at k+j.
   *   Requires k+3 < inner.
   * - `fn fetch_x_tail(…, k_end: u32)`: the same matrix with zeros from k_end on.
   *
   * Outer elements after the last have undefined values, which only affect results that are never stored. `base` is the
   * index of the first element of the matrix.
   */
  readonly code: string;
}

export const operandOf = (product: Product, side: "a" | "b"): Operand => {
  const { rows, columns, inner, transposeA, transposeB, dtype } = product;
  const outer = side === "a" ? rows : columns;
  const innerContiguous = side === "a" ? !transposeA : transposeB;
  // If true, every matrix row starts at a multiple of four elements, and a vector is either completely inside or
  // completely outside of the matrix.
  const aligned = (innerContiguous ? inner : outer) % 4 === 0;
  const outerSize = side === "a" ? "sizes.rows" : "sizes.columns";
  const load = aligned
    ? `vec4<f32>(${side}[at >> 2u])`
    : `vec4<f32>(vec4<${dtype}>(${range(4)
        .map((i) => `${side}[at + ${i}u]`)
        .join(", ")}))`;
  const body = (tail: boolean): string => {
    if (!innerContiguous) {
      const vectors = range(4).map((j) => {
        const value = `load_${side}(at${j === 0 ? "" : ` + ${j}u * ${outerSize}`})`;
        return tail ? `select(vec4<f32>(), ${value}, k + ${j}u < k_end)` : value;
      });
      return wgsl`
        let at = base + k * ${outerSize} + min(outer, ${outerSize} - ${aligned ? 4 : 1}u);
        return mat4x4<f32>(${vectors.join(", ")});
      `;
    }
    const vectors = range(4).map((i) => {
      const value = `load_${side}(base + min(outer + ${i}u, ${outerSize} - 1u) * sizes.inner + k)`;
      return tail ? `select(vec4<f32>(), ${value}, inside)` : value;
    });
    return wgsl`
      ${tail ? "let inside = vec4<u32>(k, k + 1u, k + 2u, k + 3u) < vec4<u32>(k_end);" : ""}
      return transpose(mat4x4<f32>(${vectors.join(", ")}));
    `;
  };
  return {
    binding: {
      name: side,
      type: `array<${aligned ? `vec4<${dtype}>` : dtype}>`,
      source: { input: side === "a" ? 0 : 1 },
      access: "read",
    },
    innerContiguous,
    code: wgsl`
      fn load_${side}(at: u32) -> vec4<f32> { return ${load}; }
      fn fetch_${side}(base: u32, outer: u32, k: u32) -> mat4x4<f32> {
        ${body(false)}
      }
      fn fetch_${side}_tail(base: u32, outer: u32, k: u32, k_end: u32) -> mat4x4<f32> {
        ${body(true)}
      }
    `,
  };
};

/** Destination of a pass's sums: the result, or a block of f32 partial sums. */
export interface Sink {
  readonly binding: Binding;
  /**
   * WGSL of `fn store_y(row_at: u32, column: u32, v: vec4<f32>)`, which writes columns column … column+3 of the row
   * that starts at element row_at.
   */
  readonly code: string;
}

export const sinkOf = ({ columns, resultDtype }: Product, partial: boolean): Sink => {
  const element = partial ? "f32" : resultDtype;
  const aligned = columns % 4 === 0;
  const stores = aligned
    ? `if (column < sizes.columns) { y[(row_at + column) >> 2u] = vec4<${element}>(v); }`
    : range(4).map((i) => `if (column + ${i}u < sizes.columns) { y[row_at + column + ${i}u] = ${element}(v[${i}]); }`);
  return {
    binding: {
      name: "y",
      type: `array<${aligned ? `vec4<${element}>` : element}>`,
      source: partial ? { scratch: 0 } : { output: 0 },
      access: "write",
    },
    code: wgsl`
      fn store_y(row_at: u32, column: u32, v: vec4<f32>) {
        ${stores}
      }
    `,
  };
};

/** Returns the fields of `sizes` that the code of operands and sinks reads. */
export const matrixSizes = ({
  rows,
  columns,
  inner,
}: Product): { readonly rows: number; readonly columns: number; readonly inner: number } => ({
  rows,
  columns,
  inner,
});
