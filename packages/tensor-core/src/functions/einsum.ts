import { ArgumentError, ShapeError } from "../errors.ts";
import { requireOperands } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { elementCount, formatSpec } from "../shape.ts";
import { multiply } from "./elementwise.ts";
import { type Labels, parseEinsum } from "./einsum-expression.ts";
import { matmul } from "./linear.ts";
import { reshape, slice, transpose } from "./movement.ts";
import { sum } from "./reduce.ts";

/** A tensor whose dimensions have names, each of them once. */
interface Term {
  readonly x: Tensor;
  readonly labels: Labels;
}

const inOrder = ({ x, labels }: Term, order: Labels): Tensor =>
  transpose(
    x,
    order.map((label) => labels.indexOf(label)),
  );

/** Where a name stands twice, take the entries with both indices equal: every (n + 1)-th of a square of n. */
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

const without = (
  { x, labels }: Term,
  drop: (label: string, dim: number) => boolean,
  take: (x: Tensor, dims: number[]) => Tensor,
): Term => {
  const dims = labels.flatMap((label, dim) => (drop(label, dim) ? [dim] : []));
  return dims.length === 0
    ? { x, labels }
    : { x: take(x, dims), labels: labels.filter((_, dim) => !dims.includes(dim)) };
};

/** Add up what nobody asks for any more. */
const summed = (term: Term, keeps: (label: string) => boolean): Term =>
  without(
    term,
    (label) => !keeps(label),
    (x, dims) => sum(x, { dims }),
  );

/** A dimension of size 1 that others stretch is as good as none. */
const unstretched = (term: Term, sizes: ReadonlyMap<string, number>): Term =>
  without(
    term,
    (label, dim) => term.x.shape[dim] !== sizes.get(label),
    (x, dims) =>
      reshape(
        x,
        x.shape.filter((_, dim) => !dims.includes(dim)),
      ),
  );

/** A term as [batch, rows, columns], or read transposed where it lies so. */
const asMatrices = (
  term: Term,
  batch: Labels,
  rows: Labels,
  columns: Labels,
  count: (labels: Labels) => number,
): [Tensor, boolean] => {
  const turned = [...batch, ...columns, ...rows];
  const lead = batch.length === 0 ? [] : [count(batch)];
  // One row or column is the same either way; said plainly, the product is chosen by its shape alone.
  if (rows.length > 0 && columns.length > 0 && turned.every((label, dim) => label === term.labels[dim]))
    return [reshape(term.x, [...lead, count(columns), count(rows)]), true];
  return [reshape(inOrder(term, [...batch, ...rows, ...columns]), [...lead, count(rows), count(columns)]), false];
};

/**
 * Multiply two terms and sum over the names that both have and nobody else wants. `wanted` is in the order of the
 * result.
 */
const contract = (one: Term, other: Term, wanted: Labels, sizes: ReadonlyMap<string, number>): Term => {
  const keeps = new Set(wanted);
  const a = summed(one, (label) => keeps.has(label) || other.labels.includes(label));
  const b = summed(other, (label) => keeps.has(label) || one.labels.includes(label));
  const shared = a.labels.filter((label) => b.labels.includes(label));
  const batch = shared.filter((label) => keeps.has(label));
  const inner = shared.filter((label) => !keeps.has(label));
  const rows = a.labels.filter((label) => !shared.includes(label));
  const columns = b.labels.filter((label) => !shared.includes(label));
  const place = (labels: Labels): number => wanted.indexOf(labels[0]!);
  if (rows.length > 0 && columns.length > 0 && place(columns) < place(rows)) return contract(other, one, wanted, sizes);
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
    return summed({ x: multiply(aligned(a), aligned(b)), labels: order }, (label) => !inner.includes(label));
  }
  const count = (names: Labels): number => elementCount(shapeOf(names));
  const [left, transposeA] = asMatrices(a, batch, rows, inner, count);
  const [right, transposeB] = asMatrices(b, batch, inner, columns, count);
  return { x: reshape(matmul(left, right, { transposeA, transposeB }), shapeOf(labels)), labels };
};

/** The pair of terms whose product takes the fewest multiplications; the first of several. */
const cheapestPair = (terms: readonly Term[], sizes: ReadonlyMap<string, number>): readonly [number, number] => {
  const costOf = (a: Term, b: Term): number =>
    elementCount([...new Set([...a.labels, ...b.labels])].map((label) => sizes.get(label)!));
  const pairs = terms.flatMap((a, i) =>
    terms.slice(i + 1).map((b, offset) => ({ pair: [i, i + 1 + offset] as const, cost: costOf(a, b) })),
  );
  return pairs.reduce((best, next) => (next.cost < best.cost ? next : best)).pair;
};

/**
 * Multiply tensors, and sum over the dimensions whose names do not stand on the right (Einstein's summation):
 * `"bij,bjk->bik"` is a product of matrices, `"ii->i"` a diagonal, `"ij->ji"` a transposition, `"i,j->ij"` an outer
 * product.
 *
 * One letter for each dimension; the same letter is the same size everywhere, and twice in one operand takes its
 * diagonal. `...` stands for all dimensions without a letter; they are aligned at the end and stretch as in `add`.
 * Without `->` the result has the dimensions of `...`, then the letters that stand once, in alphabetical order.
 *
 * @param operands f32, as many as the expression names.
 * @throws ArgumentError for an expression that cannot be read, ShapeError where the operands do not fit it.
 * @example einsum("bthk,bshk->bhts", queries, keys) // scores of attention
 * Cost: operands are multiplied in pairs, at each turn the pair that takes the fewest multiplications, as a product of
 * matrices where they share a sum; dimensions that lie in another order are transposed before.
 */
export const einsum = (expression: string, ...operands: readonly Tensor[]): Tensor => {
  if (typeof expression !== "string")
    throw new ArgumentError(`einsum: the first argument is no expression; write einsum("ij,jk->ik", a, b)`);
  requireOperands("einsum", operands);
  const { inputs, output, sizes } = parseEinsum(expression, operands);
  for (const operand of operands)
    if (operand.dtype !== "f32")
      throw new ShapeError("einsum", `operand ${formatSpec(operand)} is not supported, it takes f32; cast it first`);
  let terms = inputs.map((labels, i) => unstretched(diagonal({ x: operands[i]!, labels }), sizes));
  while (terms.length > 1) {
    const [i, j] = cheapestPair(terms, sizes);
    const others = terms.filter((_, at) => at !== i && at !== j);
    const wanted = [...new Set([...output, ...others.flatMap(({ labels }) => labels)])];
    terms = [...others, contract(terms[i]!, terms[j]!, wanted, sizes)];
  }
  return inOrder(
    summed(terms[0]!, (label) => output.includes(label)),
    output,
  );
};
