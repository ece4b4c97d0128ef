import {
  add,
  addDecayedWeights,
  type AdamState,
  argsort,
  ArgumentError,
  broadcastTo,
  cast,
  chain,
  concat,
  type DecayMask,
  eigh,
  elementCount,
  type EmptyState,
  expandDims,
  flattenTree,
  flip,
  full,
  gather,
  type GradientTransformation,
  iota,
  leafPaths,
  matmul,
  multiply,
  qr,
  reshape,
  scaleByAdam,
  scaleByLearningRate,
  type Schedule,
  type ScheduleState,
  split,
  square,
  sum,
  swapDims,
  type Tensor,
  unflattenTree,
} from "@skein/tensor-core";
import {
  asMatrices,
  identityMatrix,
  isMatrix,
  restoreShape,
  matricesBy,
  noStacks,
  sidesOf,
  type StackDims,
} from "./matrices.ts";
import { checkDecay } from "./options.ts";
import { type ReplicaAxis, replicaAxisOf } from "./replica-axis.ts";
import { shareWork } from "./share-work.ts";

export interface SoapOptions {
  /** Decay of the gradients' running mean. Default: 0.95. */
  readonly beta1?: number;
  /** Decay of the running means: squared gradients, and both second moments. Default: 0.95. */
  readonly beta2?: number;
  /** Epsilon of Adam. Default: 10⁻⁸. */
  readonly epsilon?: number;
  /**
   * Maximum number of rows or columns for which gradients are rotated. A side of a matrix (its rows or its columns)
   * that is longer has no basis. Default: 1024.
   */
  readonly largestSide?: number;
  /** Parameters that are stacks of matrices. Each matrix of a stack has separate bases. Default: none. */
  readonly stackDims?: StackDims;
  /** Mesh axis over whose ranks the bases are distributed. Default: each rank computes all bases. */
  readonly axis?: ReplicaAxis;
}

/**
 * Tensors for the rows (`left`) and for the columns (`right`) of each matrix, by path of the parameter: [n, n] and [m,
 * m] for a matrix [n, m], [matrices, n, n] and [matrices, m, m] for a stack. Absent: the side is not rotated.
 */
export interface SoapSides {
  readonly left: Readonly<Record<string, Tensor>>;
  readonly right: Readonly<Record<string, Tensor>>;
}

export interface SoapState {
  /** Second moments. */
  readonly moments: SoapSides;
  /** Approximate eigenvectors of the second moments, as columns. */
  readonly bases: SoapSides;
  /** State of Adam in the bases. */
  readonly adam: AdamState;
}

type Side = keyof SoapSides;

/** Tensors for the rows (`left`) and columns (`right`) of one matrix. */
type OwnSides = { readonly [side in Side]?: Tensor };

const sides: readonly Side[] = ["left", "right"];

const mapSides = (of: OwnSides, fn: (value: Tensor, side: Side) => Tensor): OwnSides =>
  Object.fromEntries(sides.flatMap((side) => (of[side] === undefined ? [] : [[side, fn(of[side], side)]])));

const sidesByPath = ({ left, right }: SoapSides, path: string): OwnSides => ({
  ...(left[path] !== undefined && { left: left[path] }),
  ...(right[path] !== undefined && { right: right[path] }),
});

/** Returns the tensors of all matrices by path. Inverse of `sidesByPath`. */
const byPath = (paths: readonly string[], each: readonly OwnSides[]): SoapSides => {
  const of = (side: Side): Record<string, Tensor> =>
    Object.fromEntries(paths.flatMap((path, i) => (each[i]![side] === undefined ? [] : [[path, each[i]![side]]])));
  return { left: of("left"), right: of("right") };
};

/** Rotates a matrix `x` into the bases L (`left`) and R (`right`): returns `Lᵀ x R`. */
const rotate = (x: Tensor, { left, right }: OwnSides): Tensor => {
  const rows = left === undefined ? x : matmul(left, x, { transposeA: true });
  return right === undefined ? rows : matmul(rows, right);
};

/** Rotates a matrix `x` back from the bases L (`left`) and R (`right`): returns `L x Rᵀ`. */
const rotateBack = (x: Tensor, { left, right }: OwnSides): Tensor => {
  const rows = left === undefined ? x : matmul(left, x);
  return right === undefined ? rows : matmul(rows, right, { transposeB: true });
};

/**
 * Updates a basis by one step of power iteration. Returns [n, n + 1]: n columns with the new basis, then a column with
 * the old index of each new column.
 *
 * Before the power iteration, columns are sorted by the second moment along each column, in descending order.
 */
const iterateBasis = (moment: Tensor, basis: Tensor): Tensor => {
  const product = matmul(moment, basis);
  const order = argsort(sum(multiply(basis, product), { dims: -2 }), { descending: true });
  const { q } = qr(columnsOf(product, order));
  return concat([q, expandDims(cast(order, "f32"), { dims: -1 })], { dim: -1 });
};

/** Returns an initial basis from eigenvectors, in the format of `iterateBasis`, with 0 as old indices. */
const decomposeMoment = (moment: Tensor): Tensor => {
  const vectors = flip(eigh(moment).vectors, { dims: -1 });
  return concat([vectors, full([...moment.shape.slice(0, -1), 1], 0)], { dim: -1 });
};

/** Gathers rows of [n, m] by indices [k], or rows of each matrix of [matrices, n, m] by indices [matrices, k]. */
const rowsOf = (x: Tensor, order: Tensor): Tensor => {
  if (x.rank === 2) return gather(x, order);
  const [count, n, m] = x.shape as [number, number, number];
  const first = multiply(iota([count, 1], "i32", { dim: 0 }), n);
  return gather(reshape(x, [count * n, m]), add(order, first));
};

const columnsOf = (x: Tensor, order: Tensor): Tensor =>
  x.rank === 2 ? gather(x, order, { dim: 1 }) : swapDims(rowsOf(swapDims(x, -1, -2), order), -1, -2);

/**
 * SOAP: Adam in the eigenbases of Shampoo's second moments `E[∇∇ᵀ]` and `E[∇ᵀ∇]`. A gradient is rotated into the bases,
 * and Adam's direction is rotated back. Convolution kernels are viewed as [height · width · inputs, outputs]. Matrices
 * of a stack are treated separately. Vectors are updated by Adam.
 *
 * In steps with `refresh`, bases are recomputed after the update: by an eigendecomposition in the first refresh
 * (`first`), later by sorting the columns by their eigenvalues, one power iteration, and a QR factorization. Adam's
 * mean is rotated into the new bases. Adam's second moments are permuted like the columns of the bases. Before the
 * first refresh, the bases are identities.
 *
 * Cost per matrix: state of `2(n² + m²)` numbers in addition to Adam's state; `6nm(n + m)` flops per step; about
 * `7(n³ + m³)` flops per refresh, including the first refresh. With an axis, each rank computes its share, and sends
 * the results to all other ranks.
 * @example
 * ```ts
 * const optimizer = chain(scaleBySoap(), scaleByLearningRate(0.003));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const [w, gradient] = [NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 0, 0, 1], [2, 2])];
 * const next = await evaluate(step, referenceBackend())(w, gradient);
 * console.log(next.toNumbers().map((value) => value.toFixed(2)).join(" ")); // 1.00 2.00 3.00 4.00
 * ```
 * Source: Vyas et al. 2024 (SOAP), arXiv 2409.11321, Algorithm 3. The authors' code skips the first update; this
 * implementation makes Adam's update instead.
 */
export const scaleBySoap = ({
  beta1 = 0.95,
  beta2 = 0.95,
  epsilon = 1e-8,
  largestSide = 1024,
  stackDims = noStacks,
  axis,
}: SoapOptions = {}): GradientTransformation<SoapState> => {
  checkDecay("scaleBySoap", beta2);
  if (!Number.isInteger(largestSide) || largestSide < 1)
    throw new ArgumentError(
      `scaleBySoap: largestSide is ${largestSide}; use a whole number of rows from 1, such as 1024`,
    );
  const adam = scaleByAdam({ beta1, beta2, epsilon });
  const matricesOf = (tree: unknown): { readonly paths: string[]; readonly matrices: Tensor[] } => {
    const all = leafPaths(tree);
    const own = flattenTree<Tensor>(tree).leaves.flatMap((leaf, i) =>
      isMatrix(leaf, stackDims(all[i]!)) ? [{ path: all[i]!, matrix: asMatrices(leaf, stackDims(all[i]!)) }] : [],
    );
    return { paths: own.map(({ path }) => path), matrices: own.map(({ matrix }) => matrix) };
  };
  /** Returns a tree of the same structure as `tree`, in which each matrix is replaced by the result of `fn`. */
  const mapMatrices = <T>(tree: T, fn: (matrix: Tensor, i: number) => Tensor): T => {
    const { leaves, structure } = flattenTree<Tensor>(tree);
    const stacks = leafPaths(tree).map(stackDims);
    let next = 0;
    return unflattenTree<T>(
      structure,
      leaves.map((leaf, i) =>
        isMatrix(leaf, stacks[i]) ? restoreShape(fn(asMatrices(leaf, stacks[i]), next++), leaf) : leaf,
      ),
    );
  };
  /**
   * Creates one square tensor for the rows and one for the columns of each matrix.
   *
   * @param fill returns the tensor [size, size] for one matrix.
   */
  const eachSide = (params: unknown, fill: (size: number) => Tensor): SoapSides => {
    const { paths, matrices } = matricesOf(params);
    const each = matrices.map((matrix): OwnSides => {
      const [n, m] = sidesOf(matrix);
      const filled = (size: number): Tensor => {
        const stack = matrix.shape.slice(0, -2);
        return stack.length === 0 ? fill(size) : broadcastTo(fill(size), [...stack, size, size]);
      };
      return { ...(n <= largestSide && { left: filled(n) }), ...(m <= largestSide && { right: filled(m) }) };
    });
    return byPath(paths, each);
  };

  /** Computes all bases, each basis on one rank, and the new order of the columns of each basis. */
  const nextBases = (
    paths: readonly string[],
    { moments, bases }: { readonly moments: readonly OwnSides[]; readonly bases: readonly OwnSides[] },
    isFirst: boolean,
  ): { readonly bases: readonly OwnSides[]; readonly orders: readonly OwnSides[] } => {
    const pieces = bases.flatMap((own, i) =>
      sides.flatMap((side) => (own[side] === undefined ? [] : [{ i, side, basis: own[side] }])),
    );
    const derived = shareWork(
      "bases",
      pieces.map(({ i, side, basis }) => {
        const n = basis.shape.at(-1)!;
        return {
          shape: [...basis.shape.slice(0, -1), n + 1],
          cost: elementCount(basis.shape) * n,
          axis: replicaAxisOf(axis, paths[i]!),
          inputs: [moments[i]![side]!, basis],
          compute: (moment: Tensor, old: Tensor) => (isFirst ? decomposeMoment(moment) : iterateBasis(moment, old)),
        };
      }),
    );
    const partOf = (read: (both: readonly [vectors: Tensor, order: Tensor]) => Tensor): OwnSides[] =>
      bases.map((own, i) =>
        mapSides(own, (basis, side) => {
          const both = derived[pieces.findIndex((piece) => piece.i === i && piece.side === side)]!;
          return read(split(both, [basis.shape.at(-1)!, 1], { dim: -1 }) as [Tensor, Tensor]);
        }),
      );
    return {
      bases: partOf(([vectors]) => vectors),
      orders: partOf(([vectors, order]) => cast(reshape(order, vectors.shape.slice(0, -1)), "i32")),
    };
  };

  return {
    init: (params) => {
      const bases = eachSide(params, identityMatrix);
      return { moments: eachSide(params, (size) => full([size, size], 0)), bases, adam: adam.init(params) };
    },
    update: (gradients, state, context) => {
      const { refresh = true, first = false } = context;
      const { paths, matrices } = matricesOf(gradients);
      const before = paths.map((path) => sidesByPath(state.bases, path));
      const moments = paths.map((path, i) =>
        mapSides(sidesByPath(state.moments, path), (old, side) =>
          add(
            multiply(old, beta2),
            multiply(
              matmul(matrices[i]!, matrices[i]!, side === "left" ? { transposeB: true } : { transposeA: true }),
              1 - beta2,
            ),
          ),
        ),
      );
      const inBases = mapMatrices(gradients, (matrix, i) => rotate(matrix, before[i]!));
      const [directions, after] = adam.update(inBases, state.adam, context);
      const updates = mapMatrices(directions, (matrix, i) => rotateBack(matrix, before[i]!));
      if (!refresh) return [updates, { ...state, moments: byPath(paths, moments), adam: after }];
      const { bases, orders } = nextBases(paths, { moments, bases: before }, first);
      const mean = mapMatrices(after.mean, (matrix, i) => rotate(rotateBack(matrix, before[i]!), bases[i]!));
      const squares = mapMatrices(after.square, (matrix, i) => {
        // As if the first gradient had been rotated into the bases that are computed after it.
        if (first) return multiply(square(rotate(matrices[i]!, bases[i]!)), 1 - beta2);
        const { left, right } = orders[i]!;
        const rows = left === undefined ? matrix : rowsOf(matrix, left);
        return right === undefined ? rows : columnsOf(rows, right);
      });
      return [
        updates,
        {
          moments: byPath(paths, moments),
          bases: byPath(paths, bases),
          adam: { ...after, mean, square: squares },
        },
      ];
    },
  };
};

/** Options of SOAP as a complete optimizer, including learning rate and weight decay. */
export interface SoapOptimizerOptions extends SoapOptions {
  readonly learningRate: Schedule;
  /** Decoupled weight decay of the parameters in `mask`. Default: 0.01. */
  readonly weightDecay?: number;
  /** Parameters with weight decay. Default: matrices, kernels and stacks of matrices. */
  readonly mask?: DecayMask;
}

/**
 * SOAP as a complete optimizer: `scaleBySoap`, decoupled weight decay, learning rate.
 *
 * @example
 * ```ts
 * const optimizer = soap({ learningRate: 0.003 });
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const [w, gradient] = [NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 0, 0, 1], [2, 2])];
 * const next = await evaluate(step, referenceBackend())(w, gradient);
 * console.log(next.toNumbers().map((value) => value.toFixed(2)).join(" ")); // 1.00 2.00 3.00 4.00
 * ```
 * Source: Vyas et al. 2024, arXiv 2409.11321.
 */
export const soap = ({
  learningRate,
  weightDecay = 0.01,
  stackDims = noStacks,
  mask = matricesBy(stackDims),
  ...options
}: SoapOptimizerOptions): GradientTransformation<[SoapState, EmptyState, ScheduleState]> =>
  chain(
    scaleBySoap({ ...options, stackDims }),
    addDecayedWeights(weightDecay, mask),
    scaleByLearningRate(learningRate),
  );
