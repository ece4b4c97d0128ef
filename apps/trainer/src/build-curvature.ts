import {
  eva,
  evaF,
  kfac,
  type Layer,
  meanStatistics,
  type ModelLayers,
  placeEverywhere,
  placeInTurn,
  type Preconditioner,
  type UpdateSizeOptions,
} from "@skein/second-order";
import { buildLearningRate } from "./build-learning-rate.ts";
import type { Curvature, CurvatureMode } from "./curvature.ts";
import { ConfigError } from "./errors.ts";
import type { CurvatureJob, Job } from "./job.ts";
import { dataAxis } from "./mesh.ts";

const placementOf = (job: Extract<CurvatureJob, { kind: "kfac" }>, layers: readonly Layer[], ranks: number) => {
  const paths = layers.map(({ path }) => path);
  switch (job.form) {
    case "d":
      return placeEverywhere(paths, ranks);
    case "mpd":
      return placeInTurn(paths, ranks);
  }
};

const buildPreconditioner = (
  job: CurvatureJob,
  layers: readonly Layer[],
  ranks: number,
  size: UpdateSizeOptions,
): Preconditioner<unknown> => {
  const { damping, curvatureDecay: decay } = job;
  const options = { layers, damping, decay, ...size };
  switch (job.kind) {
    case "eva":
      return eva(options) as Preconditioner<unknown>;
    case "eva-f":
      return evaF(options) as Preconditioner<unknown>;
    case "kfac":
      return kfac({
        ...options,
        positions: job.positions,
        distribution: { axis: dataAxis, placement: placementOf(job, layers, ranks) },
      }) as Preconditioner<unknown>;
  }
};

/** By the number of the step, counted from 0. */
const modesOf = (job: CurvatureJob): ((step: number) => CurvatureMode) => {
  if (job.kind !== "kfac") return () => "refresh";
  const { factorEvery, inverseEvery } = job;
  return (step) => (step % inverseEvery === 0 ? "refresh" : step % factorEvery === 0 ? "observe" : "keep");
};

/**
 * What the optimizer of a job needs of its model; undefined for one that looks at gradients alone.
 *
 * @throws ConfigError for a model without a layer.
 */
export const buildCurvature = (
  { optimizer, learningRate, ranks, batch }: Job,
  totalSteps: number,
  find: () => ModelLayers,
): Curvature | undefined => {
  if (!("curvatureDecay" in optimizer)) return undefined;
  const found = find();
  if (found.layers.length === 0)
    throw new ConfigError([
      `optimizer.kind: ${optimizer.kind} preconditions the gradients of layers, but the model has none: ${found.firstOrder.map(({ path, why }) => `${path}: ${why}`).join("; ")}; use another optimizer, such as momentum`,
    ]);
  const { size, klClip, statisticsSamples } = optimizer;
  const rate = buildLearningRate(learningRate, totalSteps);
  const preconditioner = buildPreconditioner(optimizer, found.layers, ranks, { size, klClip, learningRate: rate });
  return {
    ...found,
    preconditioner,
    modeAt: modesOf(optimizer),
    observing: (key) => ({
      statistic: preconditioner.statistic,
      samples: batch / ranks,
      ...(statisticsSamples !== undefined && { draw: { count: statisticsSamples, key } }),
      collector: meanStatistics({ axis: dataAxis }),
    }),
  };
};
