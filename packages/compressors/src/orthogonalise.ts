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
 * Each column over its length; a column of zeros stays. The length is taken of the column over its greatest entry,
 * which cannot overflow.
 */
export const unitColumns = (x: Tensor): Tensor => {
  const positive = (size: Tensor): Tensor => where(equal(size, 0), 1, size);
  const scaled = divide(x, positive(reduceMax(absolute(x), { dims: -2, keepDims: true })));
  return divide(scaled, positive(sqrt(sum(square(scaled), { dims: -2, keepDims: true }))));
};

/**
 * Make the columns of a tall matrix orthonormal, without changing what they span: `QᵀQ = I`, `Q = P R⁻¹`.
 *
 * Columns are first brought to length 1, so that their sizes do not count; then three times `G = PᵀP`, `L Lᵀ = G + S`,
 * `P ← P L⁻ᵀ`. The shift S, diagonal, keeps the factorisation alive: `s = 4ε(r√r + √(rn))`, above what rounding does to
 * G; less, down to nothing, in rows that are near those of I, so that it leaves no trace in a result that is
 * orthonormal already.
 *
 * Directions that P lacks are not made up: of a matrix of lower rank, or zero, `Q` has singular values 1 for the
 * directions that are there, and values between 0 and 1 for rounding errors. So `QᵀQ ≤ I`, and `M − Q QᵀM` is never
 * longer than M. Nothing is NaN unless P is. (Householder and Gram–Schmidt divide by what is left of a column, and make
 * up a direction, or NaN, where nothing is.)
 *
 * @param p f32 [..., n, r], n ≥ r; for example [4608, 4].
 * @returns f32 of the same shape.
 * @throws ShapeError for a matrix with more columns than rows.
 * Cost: 12nr² flops and three factorisations of [r, r].
 * Source: Fukaya et al. 2020, Shifted Cholesky QR, doi 10.1137/18M1218212; the shift in every pass and per row is ours.
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
    // A row whose distance from that of I is below ½ has a pivot of ½ at least (Gershgorin), and needs no shift to be
    // safe.
    const distance = sum(absolute(subtract(gram, identity)), { dims: -1, keepDims: true });
    const shifted = add(gram, multiply(identity, multiply(minimum(multiply(distance, 2), 1), shift)));
    const inverse = triangularSolve(cholesky(shifted), identity, { lower: true, transpose: false });
    return matmul(q, inverse, { transposeB: true });
  };
  return Array.from({ length: numPasses }).reduce<Tensor>(pass, unitColumns(p));
};
