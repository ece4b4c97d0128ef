import { ConfigError } from "@skein/cli/node";
import {
  type CurvatureJob,
  dataAxis,
  type FactorBucketsJob,
  gridAxes,
  type Job,
  type KfacJob,
  numBatchParts,
  samplesAtOnce,
} from "@skein/job/node";
import { isGateNode } from "@skein/moe-parallel";
import {
  choleskyInverse,
  eigenInverse,
  eva,
  evaF,
  evaS,
  type FactorInverse,
  kfac,
  type KfacForm,
  type Layer,
  meanStatistics,
  type ModelLayers,
  muon,
  ownStatistics,
  placeForm,
  type Preconditioner,
  shampoo,
  soap,
  type StackDims,
  type UpdateSizeOptions,
} from "@skein/second-order";
import {
  chain,
  type DecayMask,
  decayMatrices,
  type GradientTransformation,
  momentum,
  type Schedule,
} from "@skein/tensor-core";
import type { Curvature, CurvatureMode } from "./curvature.ts";
import { decayMaskOf, type ParameterGroups } from "./parameter-groups.ts";
import type { CurvaturePlan } from "../plans/curvature-plan.ts";

/** Returns the K-FAC variant that a job selects. `auto` starts as `mpd` until measurements exist. */
const formOf = ({ form, gradientWorkers: fraction }: KfacJob): KfacForm => {
  switch (form) {
    case "kaisa":
    case "pad":
    case "dp-hybrid":
      return { kind: form, fraction };
    case "auto":
      return { kind: "mpd" };
    default:
      return { kind: form };
  }
};

/** Whether each rank has separate factors, computed from its own samples. */
const hasOwnFactors = (job: CurvatureJob): boolean =>
  job.kind === "kfac" && (job.form === "dp" || job.form === "dp-hybrid");

const kfacInverseOf = ({ inverse }: KfacJob): FactorInverse => (inverse === "eigen" ? eigenInverse : choleskyInverse);

/** Returns the factor bucket size in bytes; undefined if buckets are planned, or the job does not set buckets. */
export const factorBucketBytes = (buckets: FactorBucketsJob | undefined): number | undefined =>
  buckets?.kind === "per-factor" ? 0 : buckets?.kind === "fixed-size" ? buckets.bytes : undefined;

const buildPreconditioner = (
  job: CurvatureJob,
  layers: readonly Layer[],
  {
    ranks,
    plan,
    size,
  }: { readonly ranks: number; readonly plan: CurvaturePlan | undefined; readonly size: UpdateSizeOptions },
): Preconditioner<unknown> => {
  const { damping, curvatureDecay: decay } = job;
  const options = { layers, damping, decay, ...size };
  switch (job.kind) {
    case "eva":
      return eva(options) as Preconditioner<unknown>;
    case "eva-f":
      return evaF(options) as Preconditioner<unknown>;
    case "kfac": {
      const { placement, factors } = plan ?? placeForm(formOf(job), { layers, numRanks: ranks });
      return kfac({
        ...options,
        positions: job.positions,
        ...(job.blockSize !== undefined && { blockSize: job.blockSize }),
        inverse: kfacInverseOf(job),
        distribution: { axis: dataAxis, placement, grid: gridAxes, factors, hasOwnState: job.form === "auto" },
      }) as Preconditioner<unknown>;
    }
  }
};

/**
 * Returns a function that maps the number of earlier updates to the curvature mode of the next step. K-FAC follows
 * `factorEvery` and `inverseEvery`; other optimizers refresh in every step.
 */
const modesOf = (job: CurvatureJob): ((updates: number) => CurvatureMode) => {
  if (job.kind !== "kfac") return () => "refresh";
  const { factorEvery, inverseEvery } = job;
  return (updates) => (updates % inverseEvery === 0 ? "refresh" : updates % factorEvery === 0 ? "observe" : "keep");
};

/** Returns the layers of the model. @throws ConfigError if the model has no layers. */
const requireLayers = (kind: string, { layers, firstOrder }: ModelLayers): readonly Layer[] => {
  if (layers.length > 0) return layers;
  const reasons = firstOrder.map(({ path, why }) => `${path}: ${why}`).join("; ");
  throw new ConfigError([
    `optimizer.kind: ${kind} needs the layers of a model, but this model has no layers: ${reasons}; use another optimizer, such as momentum`,
  ]);
};

const withMomentum = (
  preconditioner: GradientTransformation<unknown>,
  { momentum: decay, weightDecay }: Pick<CurvatureJob, "momentum" | "weightDecay">,
  learningRate: Schedule,
  mask: DecayMask,
): GradientTransformation<unknown> =>
  chain(preconditioner, momentum({ learningRate, decay, weightDecay, mask })) as GradientTransformation<unknown>;

/**
 * Whether a weight belongs to a router, which computes gate scores. The gradient of a router weight comes from only a
 * few experts per step.
 */
const isRouter = (path: string, { scopes }: ModelLayers): boolean =>
  scopes.get(path)!.some((scope) => isGateNode({ scope }));

/** Inputs of `buildCurvature` in addition to the job. */
export interface CurvatureInput {
  /** Finds the layers of the job's model. */
  readonly find: () => ModelLayers;
  /** Returns the number of leading dimensions of a parameter that index separate matrices. */
  readonly stackDims: StackDims;
  /** Returns the mesh axis along which ranks have equal values of the parameter at a path. */
  readonly replicaAxis: (path: string) => string;
  readonly groups: ParameterGroups;
  /** Curvature plan from measurements. Undefined: no plan was made. */
  readonly plan: CurvaturePlan | undefined;
}

/**
 * Builds the curvature computation (layer statistics, inverses and update rule) of a job's second-order optimizer.
 * Returns undefined if the optimizer does not use curvature.
 *
 * @throws ConfigError if the model has no layers.
 */
export const buildCurvature = (
  job: Job,
  rate: Schedule,
  { find, stackDims, replicaAxis, groups, plan }: CurvatureInput,
): Curvature | undefined => {
  const { optimizer, ranks } = job;
  const mask = decayMaskOf(groups, () => true);
  const always = { modeAt: (): CurvatureMode => "keep", observing: undefined, factorNames: [] };
  switch (optimizer.kind) {
    case "eva":
    case "eva-f":
    case "kfac": {
      const layers = requireLayers(optimizer.kind, find());
      const { size, klClip, statisticsSamples } = optimizer;
      const bucketBytes = optimizer.kind === "kfac" ? factorBucketBytes(optimizer.factorBuckets) : undefined;
      const preconditioner = buildPreconditioner(optimizer, layers, {
        ranks,
        plan,
        size: { size, klClip, learningRate: rate },
      });
      return {
        rule: withMomentum(preconditioner, optimizer, rate, mask),
        hasFigures: true,
        factorNames:
          optimizer.kind === "kfac" ? layers.flatMap(({ path }) => [`${path} (inputs)`, `${path} (gradients)`]) : [],
        modeAt: modesOf(optimizer),
        observing: (key) => ({
          statistic: preconditioner.statistic,
          samples: samplesAtOnce(job),
          meanOver: job.batch / numBatchParts(job),
          ...(statisticsSamples !== undefined && {
            draw: { count: Math.ceil(statisticsSamples / (job.accumulate ?? 1)), key },
          }),
          ...(preconditioner.wants !== undefined && { wants: preconditioner.wants }),
          collector: hasOwnFactors(optimizer)
            ? ownStatistics()
            : meanStatistics({
                axis: dataAxis,
                ...(plan !== undefined ? { buckets: plan.buckets } : bucketBytes !== undefined && { bucketBytes }),
                ...(preconditioner.ownerOf !== undefined && { ownerOf: preconditioner.ownerOf }),
              }),
        }),
        ...(optimizer.kind === "kfac" && {
          planned: { layers, inverse: kfacInverseOf(optimizer), blockSize: optimizer.blockSize ?? Infinity },
        }),
      };
    }
    case "eva-s": {
      const { damping, variant, size, klClip } = optimizer;
      const preconditioner = evaS({ damping, variant, size, klClip, learningRate: rate, stackDims });
      return { ...always, rule: withMomentum(preconditioner as never, optimizer, rate, mask), hasFigures: true };
    }
    case "shampoo": {
      const { secondMomentDecay: decay, blockSize, ridge, grafting, rootsEvery } = optimizer;
      const preconditioner = shampoo({ decay, blockSize, ridge, grafting, stackDims, axis: replicaAxis });
      return {
        ...always,
        rule: withMomentum(preconditioner as never, optimizer, rate, mask),
        hasFigures: false,
        modeAt: (updates) => (updates % rootsEvery === 0 ? "refresh" : "keep"),
      };
    }
    case "soap": {
      const { kind: _, basesEvery, ...options } = optimizer;
      const rule = soap({
        ...options,
        learningRate: rate,
        mask: decayMaskOf(groups, decayMatrices),
        stackDims,
        axis: replicaAxis,
      });
      return {
        ...always,
        rule: rule as GradientTransformation<unknown>,
        hasFigures: false,
        modeAt: (updates) => (updates === 0 ? "begin" : updates % basesEvery === 0 ? "refresh" : "keep"),
      };
    }
    case "muon": {
      const { kind, adamShare, momentum: decay, nesterov, steps, weightDecay } = optimizer;
      const found = find();
      const weights = requireLayers(kind, found).filter((layer) => layer.kind !== "embedding");
      const hidden = new Set(
        [...weights.map(({ path }) => path), ...found.stacks.keys()].filter(
          (path) => path !== found.head && !isRouter(path, found),
        ),
      );
      const rule = muon({
        learningRate: rate,
        isHidden: (path) => hidden.has(path),
        decay,
        nesterov,
        steps,
        weightDecay,
        mask,
        adamShare,
        stackDims,
        axis: replicaAxis,
      });
      return { ...always, rule: rule as GradientTransformation<unknown>, hasFigures: false };
    }
    default:
      return undefined;
  }
};
