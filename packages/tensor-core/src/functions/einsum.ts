import { ArgumentError, ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { elementCount, formatSpec } from "../shape.ts";
import { multiply } from "./elementwise.ts";
import { type Labels, parseEinsum } from "./einsum-expression.ts";
import { matmul } from "./linear.ts";
import { reshape, slice, transpose } from "./movement.ts";
import { sum } from "./reduce.ts";

/** Tensor with named dimensions; all names are different. */
interface Term {
  readonly x: Tensor;
  readonly labels: Labels;
}

const inOrder = ({ x, labels }: Term, order: Labels): Tensor =>
  transpose(
    x,
    order.map((label) => labels.indexOf(label)),
  );

/**
 * Returns the diagonal of dimensions with the same name: each (n + 1)-th entry of a flattened n × n matrix. A term
 * whose names are all different is unchanged.
 */
const diagonal = ({ x, labels }: Term): Term => {
  const second = labels.findIndex((label, dim) => labels.indexOf(label) !== dim);
  if (second === -1) return { x, labels };
  const first = labels.indexOf(labels[second]!);
  const rest = labels.map((_, dim) => dim).filter((dim) => dim !== first && dim !== second);
  const size = x.shape[first]!;
  const squares = reshape(transpose(x, [...rest, first, second]), [...rest.map((dim) => x.shape[dim]!), size * size]);
  const zeros = rest.map(() => 0);
  const entries = slice(squares, [...zeros, 0], squares.shape, [...rest.map(() => 1), size + 1]);
  return diagonal({ x: entries, labels: [...rest.map((dim) => labels[dim]!), labels[first]!] });
};

const removeDims = (
  { x, labels }: Term,
  drop: (label: string, dim: number) => boolean,
  take: (x: Tensor, dims: number[]) => Tensor,
): Term => {
  const dims = labels.flatMap((label, dim) => (drop(label, dim) ? [dim] : []));
  return dims.length === 0
    ? { x, labels }
    : { x: take(x, dims), labels: labels.filter((_, dim) => !dims.includes(dim)) };
};

/** Sums over the dimensions for which `keeps` returns false. */
const sumUnneeded = (term: Term, keeps: (label: string) => boolean): Term =>
  removeDims(
    term,
    (label) => !keeps(label),
    (x, dims) => sum(x, { dims }),
  );

/** Removes dimensions of size 1 that are broadcast to the size of another operand. */
const dropBroadcast = (term: Term, sizes: ReadonlyMap<string, number>): Term =>
  removeDims(
    term,
    (label, dim) => term.x.shape[dim] !== sizes.get(label),
    (x, dims) =>
      reshape(
        x,
        x.shape.filter((_, dim) => !dims.includes(dim)),
      ),
  );

/**
 * Converts a term to matrices. Returns the matrices and whether they are transposed. If the term is stored with columns
 * before rows, returns [batch, columns, rows] and true; otherwise, [batch, rows, columns] and false.
 */
const asMatrices = (
  term: Term,
  batch: Labels,
  rows: Labels,
  columns: Labels,
  count: (labels: Labels) => number,
): [Tensor, boolean] => {
  const transposedOrder = [...batch, ...columns, ...rows];
  const lead = batch.length === 0 ? [] : [count(batch)];
  // A single row or column has the same layout in both orders. In this case the transpose flag is not set, so that the
  // kernel depends only on the shape.
  if (rows.length > 0 && columns.length > 0 && transposedOrder.every((label, dim) => label === term.labels[dim]))
    return [reshape(term.x, [...lead, count(columns), count(rows)]), true];
  return [reshape(inOrder(term, [...batch, ...rows, ...columns]), [...lead, count(rows), count(columns)]), false];
};

/**
 * Multiplies two terms, and sums over the names that occur in both terms and not in `needed`. `needed`: names of the
 * result, in order, then names of the remaining terms.
 */
const contract = (one: Term, other: Term, needed: Labels, sizes: ReadonlyMap<string, number>): Term => {
  const keeps = new Set(needed);
  const a = sumUnneeded(one, (label) => keeps.has(label) || other.labels.includes(label));
  const b = sumUnneeded(other, (label) => keeps.has(label) || one.labels.includes(label));
  const shared = a.labels.filter((label) => b.labels.includes(label));
  const batch = shared.filter((label) => keeps.has(label));
  const inner = shared.filter((label) => !keeps.has(label));
  const rows = a.labels.filter((label) => !shared.includes(label));
  const columns = b.labels.filter((label) => !shared.includes(label));
  const positionOf = (labels: Labels): number => needed.indexOf(labels[0]!);
  if (rows.length > 0 && columns.length > 0 && positionOf(columns) < positionOf(rows))
    return contract(other, one, needed, sizes);
  const shapeOf = (labels: Labels): number[] => labels.map((label) => sizes.get(label)!);
  const labels = [...batch, ...rows, ...columns];
  if (inner.length === 0 || (rows.length === 0 && columns.length === 0)) {
    const order = [...labels, ...inner];
    const aligned = (term: Term): Tensor =>
      reshape(
        inOrder(
          term,
          order.filter((label) => term.labels.includes(label)),
        ),
        order.map((label) => (term.labels.includes(label) ? sizes.get(label)! : 1)),
      );
    return sumUnneeded({ x: multiply(aligned(a), aligned(b)), labels: order }, (label) => !inner.includes(label));
  }
  const count = (names: Labels): number => elementCount(shapeOf(names));
  const [left, transposeA] = asMatrices(a, batch, rows, inner, count);
  const [right, transposeB] = asMatrices(b, batch, inner, columns, count);
  return { x: reshape(matmul(left, right, { transposeA, transposeB }), shapeOf(labels)), labels };
};

/**
 * Returns the pair of terms whose product needs the fewest multiplications. If several pairs are equal, returns the
 * first pair.
 */
const cheapestPair = (terms: readonly Term[], sizes: ReadonlyMap<string, number>): readonly [number, number] => {
  const costOf = (a: Term, b: Term): number =>
    elementCount([...new Set([...a.labels, ...b.labels])].map((label) => sizes.get(label)!));
  const pairs = terms.flatMap((a, i) =>
    terms.slice(i + 1).map((b, offset) => ({ pair: [i, i + 1 + offset] as const, cost: costOf(a, b) })),
  );
  return pairs.reduce((best, next) => (next.cost < best.cost ? next : best)).pair;
};

/**
 * Einstein summation: multiplies tensors, and sums over the dimensions whose names do not occur after `->`.
 * `"bij,bjk->bik"` is a product of matrices, `"ii->i"` a diagonal, `"ij->ji"` a transposition, `"i,j->ij"` an outer
 * product.
 *
 * Each letter names one dimension. Dimensions with the same letter must have the same size. A letter that occurs twice
 * in one operand selects the diagonal. `...` represents all dimensions without a letter, which are aligned at the last
 * dimension and broadcast as in `add`. Without `->`, the result has the dimensions of `...`, then the letters that
 * occur exactly once, in alphabetical order.
 *
 * @param operands f32 tensors, one per operand in the expression.
 * @throws ArgumentError if the expression is invalid; ShapeError if the operands do not match the expression. Cost:
 * operands are multiplied in pairs, in each step the pair with the fewest multiplications. A pair that sums over a
 * shared dimension is a matrix product; operands whose dimensions are stored in another order are transposed first.
 * @example
 * ```ts
 * const x = NdArray.from([1, 2, 3, 4], [2, 2]);
 * const y = NdArray.from([1, 1]);
 * const result = await evaluate((x: Tensor, y: Tensor) => einsum("ij,j->i", x, y), referenceBackend())(x, y);
 * console.log(result.toNumbers()); // [3, 7]
 * ```
 */
export const einsum = (expression: string, ...operands: readonly Tensor[]): Tensor => {
  if (typeof expression !== "string")
    throw new ArgumentError(`einsum: the first argument is not an expression; write einsum("ij,jk->ik", a, b)`);
  requireOperands("einsum", operands);
  const { inputs, output, sizes } = parseEinsum(expression, operands);
  for (const operand of operands)
    if (operand.dtype !== "f32")
      throw new ShapeError(
        "einsum",
        `operand ${formatSpec(operand)} is not supported, einsum takes f32; cast it first`,
      );
  let terms = inputs.map((labels, i) => dropBroadcast(diagonal({ x: operands[i]!, labels }), sizes));
  while (terms.length > 1) {
    const [i, j] = cheapestPair(terms, sizes);
    const others = terms.filter((_, at) => at !== i && at !== j);
    const needed = [...new Set([...output, ...others.flatMap(({ labels }) => labels)])];
    terms = [...others, contract(terms[i]!, terms[j]!, needed, sizes)];
  }
  return inOrder(
    sumUnneeded(terms[0]!, (label) => output.includes(label)),
    output,
  );
};
