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
  likeBefore,
  matricesBy,
  noStacks,
  sidesOf,
  type StackDims,
} from "./matrices.ts";
import { checkDecay } from "./options.ts";
import { type ReplicaAxis, replicaAxisOf } from "./replica-axis.ts";
import { shareWork } from "./share-work.ts";

export interface SoapOptions {
  /** Decay of the mean of gradients. Default: 0.95. */
  readonly beta1?: number;
  /** Decay of the mean of their squares, and of both second moments. Default: 0.95. */
  readonly beta2?: number;
  /** Of Adam. Default: 10⁻⁸. */
  readonly epsilon?: number;
  /** Most rows or columns that get a basis; a longer side stays as it is. Default: 1024. */
  readonly largestSide?: number;
  /** Which parameters are stacks, whose matrices get bases one by one. Default: none. */
  readonly stackDims?: StackDims;
  /** Mesh axis over whose ranks the bases are shared out. Default: each rank derives all of them. */
  readonly axis?: ReplicaAxis;
}

/**
 * One tensor for the rows and one for the columns of each matrix, by path of the parameter: [n, n] and [m, m] of a
 * matrix [n, m], [matrices, n, n] and [matrices, m, m] of a stack. Absent: that side is not turned.
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
  /** Of Adam, in those bases. */
  readonly adam: AdamState;
}

type Side = keyof SoapSides;

/** The two sides of one matrix. */
type OwnSides = { readonly [side in Side]?: Tensor };

const sides: readonly Side[] = ["left", "right"];

const mapSides = (of: OwnSides, fn: (value: Tensor, side: Side) => Tensor): OwnSides =>
  Object.fromEntries(sides.flatMap((side) => (of[side] === undefined ? [] : [[side, fn(of[side], side)]])));

const sidesAt = ({ left, right }: SoapSides, path: string): OwnSides => ({
  ...(left[path] !== undefined && { left: left[path] }),
  ...(right[path] !== undefined && { right: right[path] }),
});

/** Undo `sidesAt` of all matrices. */
const byPath = (paths: readonly string[], each: readonly OwnSides[]): SoapSides => {
  const of = (side: Side): Record<string, Tensor> =>
    Object.fromEntries(paths.flatMap((path, i) => (each[i]![side] === undefined ? [] : [[path, each[i]![side]]])));
  return { left: of("left"), right: of("right") };
};

/** `Lᵀ x R` */
const turned = (x: Tensor, { left, right }: OwnSides): Tensor => {
  const rows = left === undefined ? x : matmul(left, x, { transposeA: true });
  return right === undefined ? rows : matmul(rows, right);
};

/** `L x Rᵀ` */
const turnedBack = (x: Tensor, { left, right }: OwnSides): Tensor => {
  const rows = left === undefined ? x : matmul(left, x);
  return right === undefined ? rows : matmul(rows, right, { transposeB: true });
};

/**
 * The columns of a basis anew, and the columns of the old one that they come from, as one more column: [n, n + 1].
 *
 * Columns are put in the order of what of the second moment lies along each, most first; then one step of power
 * iteration on all of them at once.
 */
const iterated = (moment: Tensor, basis: Tensor): Tensor => {
  const product = matmul(moment, basis);
  const order = argsort(sum(multiply(basis, product), { dims: -2 }), { descending: true });
  const { q } = qr(columnsOf(product, order));
  return concat([q, expandDims(cast(order, "f32"), { dims: -1 })], { dim: -1 });
};

/** The same of eigenvectors, which come from no others. */
const decomposed = (moment: Tensor): Tensor => {
  const vectors = flip(eigh(moment).vectors, { dims: -1 });
  return concat([vectors, full([...moment.shape.slice(0, -1), 1], 0)], { dim: -1 });
};

/** Rows of [n, m] by their numbers [k]; of each matrix of [matrices, n, m] by those of [matrices, k]. */
const rowsOf = (x: Tensor, order: Tensor): Tensor => {
  if (x.rank === 2) return gather(x, order);
  const [count, n, m] = x.shape as [number, number, number];
  const first = multiply(iota([count, 1], "i32", { dim: 0 }), n);
  return gather(reshape(x, [count * n, m]), add(order, first));
};

const columnsOf = (x: Tensor, order: Tensor): Tensor =>
  x.rank === 2 ? gather(x, order, { dim: 1 }) : swapDims(rowsOf(swapDims(x, -1, -2), order), -1, -2);

/**
 * Adam in the eigenbases of Shampoo's second moments `E[∇∇ᵀ]` and `E[∇ᵀ∇]`: a gradient is turned into them, and the
 * direction that Adam finds there is turned back. Kernels of convolutions are read as [height · width · inputs,
 * outputs], matrices of a stack each alone; vectors are Adam's as they are.
 *
 * Bases are derived anew, after the update, in steps that are told to (`refresh`): by a decomposition where nothing is
 * known yet (`first`), else by one power iteration and a QR factorisation, after columns were put in the order of their
 * eigenvalues. Adam's mean is turned along; its squares keep the column that they are of. Before the first refresh the
 * bases are identities.
 *
 * Cost: per matrix `2(n² + m²)` numbers of state beside Adam's; per step `6nm(n + m)` flops; per refresh about `7(n³ +
 * m³)`, of the first one and later ones alike; along an axis a rank does its share, and sends it to the others.
 * Source: Vyas et al. 2024 (SOAP), arXiv 2409.11321, Algorithm 3. Their code leaves out the first update; here it is
 * Adam's.
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
    throw new ArgumentError(`scaleBySoap: largestSide is ${largestSide}; use a whole number of rows from 1, as 1024`);
  const adam = scaleByAdam({ beta1, beta2, epsilon });
  const matricesOf = (tree: unknown): { readonly paths: string[]; readonly matrices: Tensor[] } => {
    const all = leafPaths(tree);
    const own = flattenTree<Tensor>(tree).leaves.flatMap((leaf, i) =>
      isMatrix(leaf, stackDims(all[i]!)) ? [{ path: all[i]!, matrix: asMatrices(leaf, stackDims(all[i]!)) }] : [],
    );
    return { paths: own.map(({ path }) => path), matrices: own.map(({ matrix }) => matrix) };
  };
  /** The same tree with its matrices, as they are in the bases. */
  const mapMatrices = <T>(tree: T, fn: (matrix: Tensor, i: number) => Tensor): T => {
    const { leaves, structure } = flattenTree<Tensor>(tree);
    const stacks = leafPaths(tree).map(stackDims);
    let next = 0;
    return unflattenTree<T>(
      structure,
      leaves.map((leaf, i) =>
        isMatrix(leaf, stacks[i]) ? likeBefore(fn(asMatrices(leaf, stacks[i]), next++), leaf) : leaf,
      ),
    );
  };
  /** @param fill gives [size, size] of one matrix. */
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

  /** Bases of all sides, each derived by one rank, and the order of their columns. */
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
          compute: (moment: Tensor, old: Tensor) => (isFirst ? decomposed(moment) : iterated(moment, old)),
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
      const before = paths.map((path) => sidesAt(state.bases, path));
      const moments = paths.map((path, i) =>
        mapSides(sidesAt(state.moments, path), (old, side) =>
          add(
            multiply(old, beta2),
            multiply(
              matmul(matrices[i]!, matrices[i]!, side === "left" ? { transposeB: true } : { transposeA: true }),
              1 - beta2,
            ),
          ),
        ),
      );
      const inBases = mapMatrices(gradients, (matrix, i) => turned(matrix, before[i]!));
      const [directions, after] = adam.update(inBases, state.adam, context);
      const updates = mapMatrices(directions, (matrix, i) => turnedBack(matrix, before[i]!));
      if (!refresh) return [updates, { ...state, moments: byPath(paths, moments), adam: after }];
      const { bases, orders } = nextBases(paths, { moments, bases: before }, first);
      const mean = mapMatrices(after.mean, (matrix, i) => turned(turnedBack(matrix, before[i]!), bases[i]!));
      const squares = mapMatrices(after.square, (matrix, i) => {
        // As if the first gradient had been seen in the bases that were found after it.
        if (first) return multiply(square(turned(matrices[i]!, bases[i]!)), 1 - beta2);
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

/** Options of SOAP as a whole optimizer: with a learning rate and weight decay. */
export interface SoapOptimizerOptions extends SoapOptions {
  readonly learningRate: Schedule;
  /** Decoupled, of what the mask picks. Default: 0.01. */
  readonly weightDecay?: number;
  /** Default: matrices and kernels, and the matrices of stacks. */
  readonly mask?: DecayMask;
}

/**
 * SOAP: `scaleBySoap`, decoupled weight decay, learning rate.
 *
 * @example soap({ learningRate: 0.003 })
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
