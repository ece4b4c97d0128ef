import {
  add,
  concat,
  full,
  multiply,
  reshape,
  resolveSchedule,
  type Schedule,
  scope,
  slice,
  type Tensor,
} from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { type CurvatureFigures, figuresOf, zeroFigures } from "../curvature-figures.ts";
import { replicaBarrier } from "../replica-barrier.ts";
import { mapLayers } from "../map-layers.ts";
import { checkDamping, checkDecay, requireLayers } from "../options.ts";
import type { Preconditioner } from "../preconditioner.ts";
import { checkTogether } from "../placement/inverse-placement.ts";
import { dot, normSquare } from "../rank-one.ts";
import { initStatistics, mixStatistics, pastWeight } from "../running-mean.ts";
import type { Statistics } from "../statistics/collect.ts";
import { covarianceStatistic, type Positions } from "../statistics/covariances.ts";
import type { LayerSide } from "../statistics/statistic.ts";
import { type Layer, layerGradient, type LayerGradient } from "../statistics/layer.ts";
import { addSums, checkUpdateSize, zeroSums, sizeFactor, type UpdateSizeOptions } from "../update-size.ts";
import { choleskyInverse } from "./cholesky-inverse.ts";
import type { DerivedFactor, FactorInverse, Sides } from "./factor-inverse.ts";
import { type KfacDistribution, type RankRole, rankRole } from "./rank-role.ts";
import { refreshFactors } from "./refresh-factors.ts";
import { broadcastTogether } from "../broadcast-together.ts";

export interface KfacOptions extends UpdateSizeOptions {
  /** Layers to precondition: see `findLayers`. Gradients of all other weights are not changed. */
  readonly layers: readonly Layer[];
  /** Damping γ, added to the curvature. Default: 0.03. */
  readonly damping?: Schedule;
  /** Weight of the previous value in the factors' running means, in [0, 1). Default: 0.95. */
  readonly decay?: number;
  /** Treatment of several positions per sample, such as pixels or tokens: see `Positions`. Default: expand. */
  readonly positions?: Positions;
  /** Maximum number of rows per factor block: see `covarianceStatistic`. Default: no blocks. */
  readonly blockSize?: number;
  /** Method to divide by the Kronecker product of both factors. Default: `choleskyInverse`. */
  readonly inverse?: FactorInverse;
  /** Distribution of the work over ranks. Default: each rank does all work. */
  readonly distribution?: KfacDistribution;
}

/** Curvature information of all layers: factors, and the tensors derived from them. */
interface Curvature {
  /** Running means of A and G per layer. */
  readonly factors: Statistics;
  /** Tensors derived from the factors at the last refresh. */
  readonly derived: Readonly<Record<string, Sides<DerivedFactor>>>;
  /**
   * Whether each factor's last refresh failed, i32 [2 · layers], with A and G of each layer alternately: 1 if the
   * factor is not positive definite or not finite, so that tensors of an earlier refresh are still used, otherwise 0.
   */
  readonly stale: Tensor;
}

/** State of K-FAC: factors and the tensors derived from them. */
export interface KfacState {
  /** Number of observed steps that the running means of the factors include, i32 scalar. */
  readonly observed: Tensor;
  /** Number of updates, i32 scalar. */
  readonly step: Tensor;
  readonly figures: CurvatureFigures;
  /** State that is equal on all ranks. */
  readonly shared: Partial<Curvature>;
  /** State that differs per rank: see `InversePlacement`. */
  readonly own: Partial<Curvature>;
}

const joinBias = ({ weight, bias }: LayerGradient): Tensor =>
  bias === undefined ? weight : concat([weight, reshape(bias, [1, -1])]);

const splitBias = (matrix: Tensor, { weight, bias }: LayerGradient): LayerGradient => {
  if (bias === undefined) return { weight: matrix };
  const inputs = weight.shape[0]!;
  return { weight: slice(matrix, [0], [inputs]), bias: reshape(slice(matrix, [inputs]), bias.shape) };
};

/**
 * K-FAC: multiplies each layer's gradient by the inverse of its damped Fisher matrix. The Fisher matrix is approximated
 * by the Kronecker product `A ⊗ G`. A is the second moment of the layer's inputs, and G is the second moment of its
 * output gradients. A and G are running means of the statistics passed to `observe`. A refresh recomputes the inverses.
 *
 * Apply momentum, weight decay and learning rate afterwards. Before the first refresh, gradients are divided by γ.
 *
 * @throws ArgumentError if the list of layers is empty, or an option is out of range.
 * Cost per layer: state of `inputs² + outputs²` numbers for the factors and again for the derived tensors;
 * `2 · inputs · outputs · (inputs + outputs)` flops per step; for a refresh see `FactorInverse`.
 * @example
 * ```ts
 * const loss = (params: { w: Tensor }, x: Tensor, y: Tensor) => mean(square(subtract(matmul(x, params.w), y)));
 * const data = [{ w: NdArray.from([0, 0], [2, 1]) }, NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, 2], [2, 1])];
 * const { layers } = findLayers(valueAndGrad(loss), data as never);
 * const optimizer = chain(kfac({ layers, learningRate: 0.1 }), momentum({ learningRate: 0.1 }));
 * console.log(layers[0]!.path, optimizer.observe !== undefined); // w true
 * ```
 * Source: Martens and Grosse 2015, arXiv 1503.05671; the clip as in Pauloski et al. 2021, arXiv 2107.01739.
 */
export const kfac = (options: KfacOptions): Preconditioner<KfacState> => {
  const {
    layers,
    damping = 0.03,
    decay = 0.95,
    positions = "expand",
    blockSize = Infinity,
    inverse = choleskyInverse,
    distribution,
  } = options;
  requireLayers("kfac", layers);
  checkDamping("kfac", damping);
  checkDecay("kfac", decay);
  checkUpdateSize("kfac", options);
  const statistic = covarianceStatistic({ positions, blockSize });
  const paths = layers.map(({ path }) => path);
  const roleOf = (): RankRole => rankRole(paths, distribution);
  const curvatureOf = ({ shared, own }: KfacState): Curvature => ({ ...shared, ...own }) as Curvature;
  const { factors: kept = "mean", hasOwnState = false, placement } = distribution ?? {};
  if (kept !== "mean" && inverse.needsBoth && placement !== undefined)
    checkTogether(placement, paths, "a rank keeps the factors that it inverts alone, and splits damping by both");
  const keeps = (layer: Layer, side: LayerSide): boolean => kept === "mean" || roleOf().inverts(layer.path, side);
  const stored = ({ factors, derived, stale }: Curvature, role: RankRole): Pick<KfacState, "shared" | "own"> => {
    const inverses = { derived, stale };
    const ownInverses = hasOwnState || role.receiversAxis !== undefined;
    const ownFactors = hasOwnState || (kept !== "mean" && role.numRanks > 1);
    return {
      shared: { ...(!ownFactors && { factors }), ...(!ownInverses && inverses) },
      own: { ...(ownFactors && { factors }), ...(ownInverses && inverses) },
    };
  };
  return {
    layers,
    statistic,
    // Every rank contributes to means, even if only another rank stores the factor.
    ...(kept === "own" && { wants: keeps }),
    ...(kept === "mean-at-owner" && {
      ownerOf: ({ path }: Layer, side: LayerSide) => roleOf().ownerOf(path, side),
    }),
    init: () => {
      const role = roleOf();
      const gamma = resolveSchedule(damping, full([], 0, "i32"));
      const derived = Object.fromEntries(
        layers
          .filter(({ path }) => role.isWorker(path))
          .map((layer) => [
            layer.path,
            {
              input: inverse.init(statistic.shapeOf(layer, "input"), gamma),
              gradient: inverse.init(statistic.shapeOf(layer, "gradient"), gamma),
            },
          ]),
      );
      const stale = full([2 * layers.length], 0, "i32");
      return {
        observed: full([], 0, "i32"),
        step: full([], 0, "i32"),
        figures: zeroFigures(),
        ...stored({ factors: initStatistics(layers, statistic, keeps), derived, stale }, role),
      };
    },
    observe: (state, statistics, { refresh = true } = {}) => {
      const role = roleOf();
      const curvature = curvatureOf(state);
      const past = pastWeight(decay, state.observed);
      const mixed = mixStatistics(past, curvature.factors, statistics as Statistics);
      // From here on, ranks use the factors differently.
      const factors = kept === "mean" && role.numRanks > 1 ? replicaBarrier(mixed) : mixed;
      const gamma = resolveSchedule(damping, state.step);
      const known = { ...curvature, factors };
      return {
        ...state,
        observed: add(state.observed, 1),
        ...stored(
          refresh ? { factors, ...refreshFactors({ layers, statistic, inverse, role, damping: gamma }, known) } : known,
          role,
        ),
      };
    },
    update: (given, state) => {
      const role = roleOf();
      const gradients = role.receiversAxis === undefined ? given : replicaBarrier(given);
      const { derived } = curvatureOf(state);
      const gamma = resolveSchedule(damping, state.step);
      const directions = preconditionLayers({ layers, inverse, role, damping: gamma }, derived, gradients);
      let sums = zeroSums();
      for (const { gradient, direction } of directions.values())
        sums = addSums(sums, {
          inner: dot(gradient, direction),
          direction: normSquare(direction),
          gradient: normSquare(gradient),
        });
      const factor = sizeFactor(options, sums, state.step);
      const updates = mapLayers(layers, gradients, ({ path }, gradient) =>
        splitBias(multiply(directions.get(path)!.direction, factor), gradient),
      );
      return [updates, { ...state, step: add(state.step, 1), figures: figuresOf(factor, gamma, sums) }];
    },
  };
};

interface Preconditioning {
  readonly layers: readonly Layer[];
  readonly inverse: FactorInverse;
  readonly role: RankRole;
  /** Damping γ, f32 scalar. */
  readonly damping: Tensor;
}

/** Returns the gradient matrix and the preconditioned gradient of each layer, by layer path, on all ranks. */
const preconditionLayers = (
  { layers, inverse, role, damping }: Preconditioning,
  derived: Curvature["derived"],
  gradients: unknown,
): ReadonlyMap<string, { readonly gradient: Tensor; readonly direction: Tensor }> => {
  const leaves = leavesByPath<Tensor>(gradients);
  const own = layers.map((layer) => {
    const gradient = joinBias(layerGradient(layer, leaves));
    const direction = role.isWorker(layer.path)
      ? scope(`precondition/${layer.path}`, () => inverse.precondition(gradient, derived[layer.path]!, damping))
      : undefined;
    return { path: layer.path, gradient, direction };
  });
  const { receiversAxis } = role;
  const everywhere =
    receiversAxis === undefined
      ? own.map(({ direction }) => direction!)
      : broadcastTogether(
          "preconditioned",
          receiversAxis,
          own.map(({ path, gradient, direction }) => ({
            root: role.columnOf(path),
            shape: gradient.shape,
            ...(direction !== undefined && { value: direction }),
          })),
        );
  return new Map(own.map(({ path, gradient }, i) => [path, { gradient, direction: everywhere[i]! }]));
};
