import {
  absolute,
  add,
  broadcastTo,
  cast,
  cholesky,
  divide,
  equal,
  formatShape,
  iota,
  matmul,
  minimum,
  multiply,
  reduceMax,
  ShapeError,
  sqrt,
  square,
  subtract,
  sum,
  type Tensor,
  triangularSolve,
  where,
} from "@skein/tensor-core";

const epsilon = 2 ** -23;
const numPasses = 3;

/**
 * Scales each column to length 1. A column of zeros does not change. The column is first divided by its largest
 * magnitude, so that its length cannot overflow.
 */
export const unitColumns = (x: Tensor): Tensor => {
  const positive = (size: Tensor): Tensor => where(equal(size, 0), 1, size);
  const scaled = divide(x, positive(reduceMax(absolute(x), { dims: -2, keepDims: true })));
  return divide(scaled, positive(sqrt(sum(square(scaled), { dims: -2, keepDims: true }))));
};

/**
 * Makes the columns of a tall matrix orthonormal, with the same column space: `QᵀQ = I`, `Q = P R⁻¹`.
 *
 * Columns are first scaled to length 1, so that the result does not depend on their sizes. Then follow three passes of
 * `G = PᵀP`, `L Lᵀ = G + S`, `P ← P L⁻ᵀ`. The diagonal shift S prevents a failure of the factorization:
 * `s = 4ε(r√r + √(rn))` exceeds the rounding error of G. If a row of G is close to a row of I, its shift is smaller,
 * down to zero, so that columns that are already orthonormal do not change.
 *
 * No directions are added that are missing in P. If P has a lower rank, or is zero, `Q` has singular values 1 for the
 * existing directions, and values from 0 to 1 for rounding errors. So `QᵀQ ≤ I`, and `M − Q QᵀM` is never longer than
 * M. The result contains NaN only if P does. (Householder and Gram–Schmidt divide by the remainder of a column. If the
 * remainder is zero, the result is an arbitrary direction or NaN.)
 *
 * @param p f32 [..., n, r], n ≥ r; for example [4608, 4].
 * @returns f32 of the same shape.
 * @throws ShapeError if a matrix has more columns than rows.
 * Cost: 12nr² flops and three factorizations of [r, r].
 * Source: Fukaya et al. 2020, Shifted Cholesky QR, doi 10.1137/18M1218212. The shift in every pass and per row is our
 * addition.
 */
export const orthogonalise = (p: Tensor): Tensor => {
  const [n, r] = p.shape.slice(-2) as [number, number];
  if (p.rank < 2 || r > n)
    throw new ShapeError(
      "orthogonalise",
      `${formatShape(p.shape)} has no ${r} orthonormal columns; give at most as many columns as rows, [..., n, r]`,
    );
  const shift = 4 * epsilon * (r * Math.sqrt(r) + Math.sqrt(r * n));
  const unit = cast(equal(iota([r, r], "i32", { dim: 0 }), iota([r, r], "i32", { dim: 1 })), "f32");
  const pass = (q: Tensor): Tensor => {
    const gram = matmul(q, q, { transposeA: true });
    const identity = broadcastTo(unit, gram.shape);
    // If a row of G differs from the row of I by less than ½, its pivot is at least ½ (Gershgorin), and it needs no
    // shift.
    const distance = sum(absolute(subtract(gram, identity)), { dims: -1, keepDims: true });
    const shifted = add(gram, multiply(identity, multiply(minimum(multiply(distance, 2), 1), shift)));
    const inverse = triangularSolve(cholesky(shifted), identity, { lower: true, transpose: false });
    return matmul(q, inverse, { transposeB: true });
  };
  return Array.from({ length: numPasses }).reduce<Tensor>(pass, unitColumns(p));
};
