import {
  add,
  ArgumentError,
  broadcastTo,
  divide,
  elementCount,
  flattenTree,
  full,
  type GradientTransformation,
  greater,
  leafPaths,
  matmul,
  multiply,
  pad,
  reshape,
  slice,
  sqrt,
  square,
  sum,
  swapDims,
  type Tensor,
  unflattenTree,
  where,
} from "@skein/tensor-core";
import { inverseRoot } from "./inverse/inverse-root.ts";
import { newtonInverseRoot } from "./inverse/newton-inverse-root.ts";
import {
  asMatrices,
  identityMatrix,
  isMatrix,
  restoreShape,
  noStacks,
  partsOf,
  sidesOf,
  type StackDims,
} from "./matrices.ts";
import { type ReplicaAxis, replicaAxisOf } from "./replica-axis.ts";
import { shareWork } from "./share-work.ts";
import { checkDecay } from "./options.ts";

export interface ShampooOptions {
  /** Weight of the previous value in the second moments, in [0, 1]. With 1, second moments are sums. Default: 1. */
  readonly decay?: number;
  /** Maximum number of rows and columns of a block; a matrix is preconditioned block by block. Default: 128. */
  readonly blockSize?: number;
  /** Number added to the diagonals of the second moments, relative to their largest eigenvalue. Default: 10⁻⁶. */
  readonly ridge?: number;
  /** Whether to scale each update to the norm of its gradient. Default: true. */
  readonly grafting?: boolean;
  /**
   * Method of computing the inverse fourth roots: from eigenvalues, or by Newton iteration with matrix products only.
   * Default: eigen.
   */
  readonly root?: "eigen" | "newton";
  /** Parameters that are stacks of matrices. Each matrix of a stack is preconditioned separately. Default: none. */
  readonly stackDims?: StackDims;
  /** Mesh axis over whose ranks the roots are distributed. Default: each rank computes all roots. */
  readonly axis?: ReplicaAxis;
}

/**
 * Tensors for the rows (`left`) and for the columns (`right`) of each matrix, by path of the parameter: [blocks, rows,
 * rows] and [blocks, columns, columns]. The blocks of all matrices of a stack are in order.
 */
export interface ShampooSides {
  readonly left: Readonly<Record<string, Tensor>>;
  readonly right: Readonly<Record<string, Tensor>>;
}

export interface ShampooState {
  /** Second moments. */
  readonly moments: ShampooSides;
  /** Inverse fourth roots of the second moments, computed at the last refresh. */
  readonly roots: ShampooSides;
}

/** Tensors for the rows (`left`) and columns (`right`) of one matrix. */
interface OwnSides {
  readonly left: Tensor;
  readonly right: Tensor;
}

const byPath = (paths: readonly string[], each: readonly OwnSides[]): ShampooSides => ({
  left: Object.fromEntries(paths.map((path, i) => [path, each[i]!.left])),
  right: Object.fromEntries(paths.map((path, i) => [path, each[i]!.right])),
});

/** Partition of a matrix into blocks of equal size, padded with zeros. */
interface Blocks {
  readonly rows: number;
  readonly columns: number;
  readonly down: number;
  readonly across: number;
}

const blocksOf = ([n, m]: readonly [number, number], most: number): Blocks => {
  const [rows, columns] = [partsOf(n, most), partsOf(m, most)];
  return { down: rows.count, across: columns.count, rows: rows.size, columns: columns.size };
};

/** Splits [n, m] or [matrices, n, m] into [blocks, rows, columns]. */
const cutBlocks = (matrices: Tensor, { down, across, rows, columns }: Blocks): Tensor => {
  const [n, m] = sidesOf(matrices);
  const whole = pad(matrices, [
    ...matrices.shape.slice(0, -2).map(() => [0, 0] as const),
    [0, down * rows - n],
    [0, across * columns - m],
  ]);
  return reshape(swapDims(reshape(whole, [-1, rows, across, columns]), 1, 2), [-1, rows, columns]);
};

/** Joins blocks to matrices. Inverse of `cutBlocks`. */
const joinBlocks = (blocks: Tensor, { down, across, rows, columns }: Blocks, { shape }: Tensor): Tensor => {
  const whole = swapDims(reshape(blocks, [-1, across, rows, columns]), 1, 2);
  return slice(
    reshape(whole, [...shape.slice(0, -2), down * rows, across * columns]),
    shape.map(() => 0),
    shape,
  );
};

/** Scales each matrix in `x` to the norm of the corresponding matrix in `size`, another tensor of matrices. */
const scaleToNormOf = (x: Tensor, size: Tensor): Tensor => {
  const squares = (of: Tensor): Tensor => sum(square(of), { dims: [-2, -1], keepDims: true });
  const own = squares(x);
  const moves = greater(own, 0);
  return multiply(x, where(moves, sqrt(divide(squares(size), where(moves, own, 1))), 1));
};

/**
 * Shampoo: multiplies each gradient matrix by inverse fourth roots of second moments: `Σ ∇∇ᵀ` from the left, and
 * `Σ ∇ᵀ∇` from the right. Convolution kernels are viewed as [height · width · inputs, outputs]. Matrices of a stack are
 * treated separately. Vectors are not changed. Apply momentum and learning rate afterwards.
 *
 * If `refresh` is passed to `update`, roots are recomputed from the moments of this step. Before the first refresh,
 * roots are identities.
 *
 * Cost per block: state of `n² + m²` numbers for the moments and again for the roots; `4nm(n + m)` flops per step; for
 * a refresh see `inverseRoot`. With an axis, each rank computes its share of the roots, and sends the results to all
 * other ranks.
 * @example
 * ```ts
 * const optimizer = chain(shampoo({ blockSize: 128 }), momentum({ learningRate: 0.1 }));
 * const step = (w: Tensor, gradient: Tensor) => {
 *   const [updates] = optimizer.update({ w: gradient }, optimizer.init({ w }), { params: { w } });
 *   return applyUpdates({ w }, updates).w;
 * };
 * const [w, gradient] = [NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 0, 0, 1], [2, 2])];
 * const next = await evaluate(step, referenceBackend())(w, gradient);
 * console.log(next.toNumbers().map((value) => value.toFixed(2)).join(" ")); // 0.90 2.00 3.00 3.90
 * ```
 * Source: Gupta et al. 2018, arXiv 1802.09568; blocks and grafting as in Anil et al. 2020, arXiv 2002.09018.
 */
export const shampoo = ({
  decay = 1,
  blockSize = 128,
  ridge = 1e-6,
  grafting = true,
  root = "eigen",
  stackDims = noStacks,
  axis,
}: ShampooOptions = {}): GradientTransformation<ShampooState> => {
  if (decay !== 1) checkDecay("shampoo", decay);
  if (!Number.isInteger(blockSize) || blockSize < 1)
    throw new ArgumentError(`shampoo: blockSize is ${blockSize}; use a whole number of rows from 1, such as 128`);
  if (root !== "eigen" && root !== "newton")
    throw new ArgumentError(`shampoo: root is ${String(root)}; use eigen or newton`);
  if (!(ridge > 0 && ridge < Infinity))
    throw new ArgumentError(`shampoo: ridge is ${ridge}; use a positive number, such as 1e-6`);
  /** Returns each leaf as [n, m] or [matrices, n, m]. Undefined for vectors. */
  const matricesOf = (tree: unknown): ({ readonly path: string; readonly matrix: Tensor } | undefined)[] => {
    const paths = leafPaths(tree);
    return flattenTree<Tensor>(tree).leaves.map((leaf, i) => {
      const [path, stack] = [paths[i]!, stackDims(paths[i]!)];
      return isMatrix(leaf, stack) ? { path, matrix: asMatrices(leaf, stack) } : undefined;
    });
  };
  const rootOf = (moment: Tensor): Tensor =>
    root === "eigen" ? inverseRoot(moment, { p: 4, ridge }) : newtonInverseRoot(moment, { p: 4, ridge });
  /** Computes the roots of all moments, each root on one rank. */
  const rootsOf = (paths: readonly string[], moments: readonly OwnSides[]): OwnSides[] => {
    const derived = shareWork(
      "roots",
      moments.flatMap(({ left, right }, i) =>
        [left, right].map((moment) => ({
          shape: moment.shape,
          cost: elementCount(moment.shape) * moment.shape.at(-1)!,
          axis: replicaAxisOf(axis, paths[i]!),
          inputs: [moment],
          compute: rootOf,
        })),
      ),
    );
    return moments.map((_, i) => ({ left: derived[2 * i]!, right: derived[2 * i + 1]! }));
  };
  return {
    init: (params) => {
      const matrices = matricesOf(params).filter((own) => own !== undefined);
      const each = (fill: (size: number, count: number) => Tensor): ShampooSides =>
        byPath(
          matrices.map(({ path }) => path),
          matrices.map(({ matrix }) => {
            const { rows, columns, down, across } = blocksOf(sidesOf(matrix), blockSize);
            const count = elementCount(matrix.shape.slice(0, -2)) * down * across;
            return { left: fill(rows, count), right: fill(columns, count) };
          }),
        );
      return {
        moments: each((size, count) => full([count, size, size], 0)),
        roots: each((size, count) => broadcastTo(identityMatrix(size), [count, size, size])),
      };
    },
    update: (gradients, state, { refresh = true }) => {
      const { leaves, structure } = flattenTree<Tensor>(gradients);
      const mix = (old: Tensor, now: Tensor): Tensor =>
        decay === 1 ? add(old, now) : add(multiply(old, decay), multiply(now, 1 - decay));
      const ofLeaves = matricesOf(gradients).map((own) => {
        if (own === undefined) return undefined;
        const blocks = blocksOf(sidesOf(own.matrix), blockSize);
        return { ...own, blocks, pieces: cutBlocks(own.matrix, blocks) };
      });
      const matrices = ofLeaves.filter((each) => each !== undefined);
      const paths = matrices.map(({ path }) => path);
      const moments = matrices.map(
        ({ path, pieces }): OwnSides => ({
          left: mix(state.moments.left[path]!, matmul(pieces, pieces, { transposeB: true })),
          right: mix(state.moments.right[path]!, matmul(pieces, pieces, { transposeA: true })),
        }),
      );
      const roots = refresh ? byPath(paths, rootsOf(paths, moments)) : state.roots;
      const updates = leaves.map((leaf, i) => {
        const own = ofLeaves[i];
        if (own === undefined) return leaf;
        const { path, matrix, blocks, pieces } = own;
        const direction = joinBlocks(matmul(matmul(roots.left[path]!, pieces), roots.right[path]!), blocks, matrix);
        return restoreShape(grafting ? scaleToNormOf(direction, matrix) : direction, leaf);
      });
      return [unflattenTree(structure, updates), { moments: byPath(paths, moments), roots }];
    },
  };
};
