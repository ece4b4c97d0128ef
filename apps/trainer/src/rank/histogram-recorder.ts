import { type Job, placeOf, replicasAxisAlong } from "@skein/job/node";
import type { Histogram, ParameterHistograms } from "@skein/report";
import {
  countValues,
  emptyRange,
  histogramOf,
  type HistogramPart,
  HistogramRequests,
  joinCounts,
  jointRange,
  rangeOf,
  type ValueRange,
} from "@skein/run-files/node";
import type { CompiledSteps, LiveState, Parts } from "@skein/step/node";
import {
  type Backend,
  type Communicator,
  type DeviceArray,
  type MeshCoordinates,
  shardAxes,
  SkeinError,
} from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { isDue } from "./is-due.ts";

export interface HistogramInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly world: Communicator;
  readonly rank: number;
  readonly steps: CompiledSteps;
  /** Output folder of the run. Users request histograms with files in this folder. */
  readonly output: string;
  /** Called on rank 0 with the histograms. @param step Number of completed steps. */
  readonly recorded: (step: number, parameters: readonly ParameterHistograms[]) => void;
  readonly remark: (text: string) => void;
}

/** Computes histograms of weights and gradients, on request or at fixed intervals. */
export interface HistogramRecorder {
  /**
   * Computes and reports histograms before a step, if due. Must be called on all ranks. @param batch Batch of the step.
   */
  before(state: LiveState, batch: object): Promise<void>;
  /**
   * Whether histograms are due before the next step, after `done` steps. Must be called on all ranks before each step.
   */
  isDue(done: number): Promise<boolean>;
}

/** A tensor for which a histogram is computed. */
interface Source {
  readonly array: DeviceArray;
  /**
   * Whether this rank counts the values of the tensor. If several ranks have the same values, only one of these ranks
   * counts.
   */
  readonly isMine: boolean;
  /** Whether the tensor is sharded over ranks. */
  readonly isShared: boolean;
}

/** Converts a range to JSON, which has no infinities; null if the range is empty. */
const rangeToJson = (range: ValueRange): ValueRange | null => (range.min <= range.max ? range : null);

/**
 * Creates a recorder. The recorder does not change the run, and has almost no cost without requests: gradients of the
 * next step are computed by a separate program, which is compiled on the first request.
 */
export const histogramRecorder = (input: HistogramInput): HistogramRecorder => {
  const { job, parts, backend, world, rank, steps } = input;
  const everySteps = job.histograms?.everySteps;
  const requests = new HistogramRequests(input.output, rank, world);
  const place: MeshCoordinates = placeOf(job, rank);

  const sourceOf = (path: string, array: DeviceArray): Source => {
    const axes = shardAxes(parts.sharding(path));
    return {
      array,
      isShared: axes.length > 0,
      isMine: axes.length === 0 ? rank === 0 : place[replicasAxisAlong(axes)] === 0,
    };
  };

  /**
   * Computes the histogram of each tensor in `sources`. If any tensor is sharded over ranks, all ranks receive the
   * results; otherwise only rank 0 does.
   */
  const count = async (sources: readonly Source[]): Promise<(Histogram | undefined)[]> => {
    const ranges = Array<ValueRange>(sources.length).fill(emptyRange);
    const ownParts = new Map<number, HistogramPart>();
    const isShared = sources.some((source) => source.isShared);
    for (const [i, { array, isMine }] of sources.entries())
      if (isMine) ranges[i] = rangeOf(await backend.download(array));
    if (isShared)
      for (const [other, text] of (await world.exchangeTexts(JSON.stringify(ranges.map(rangeToJson)))).entries())
        if (other !== rank)
          for (const [i, range] of (JSON.parse(text) as (ValueRange | null)[]).entries())
            ranges[i] = jointRange(ranges[i]!, range ?? emptyRange);
    // Downloads each part a second time, because all parts together may exceed the memory.
    for (const [i, { array, isMine }] of sources.entries())
      if (isMine) ownParts.set(i, countValues(await backend.download(array), ranges[i]!));
    const all = isShared
      ? (await world.exchangeTexts(JSON.stringify([...ownParts].filter(([i]) => sources[i]!.isShared)))).map(
          (text, other) => (other === rank ? ownParts : new Map(JSON.parse(text) as [number, HistogramPart][])),
        )
      : [ownParts];
    return sources.map((_, i) => {
      const found = all.flatMap((own) => own.get(i) ?? []);
      return found.length === 0 ? undefined : histogramOf(joinCounts(found), ranges[i]!);
    });
  };

  /**
   * Returns the gradients of the next step. If the computation fails, adds a remark and returns an empty tree, because
   * an optional request must not end the run.
   */
  const gradientsOf = async (live: LiveState, batch: object): Promise<unknown> => {
    try {
      return await steps.gradients(await live.updates(), await live.settled(), batch);
    } catch (error) {
      // User errors are thrown during compilation, on all ranks.
      if (!(error instanceof SkeinError) || error.kind !== "user") throw error;
      input.remark(`histograms after step ${live.done}: no gradients, because ${error.message}`);
      return {};
    }
  };

  const before = async (live: LiveState, batch: object): Promise<void> => {
    const { params } = await live.settled();
    const weights = leavesByPath<DeviceArray>(params);
    const gradients = leavesByPath<DeviceArray>(await gradientsOf(live, batch));
    try {
      const paths = [...weights.keys()];
      const trained = paths.filter((path) => gradients.has(path));
      const found = await count([
        ...paths.map((path) => sourceOf(path, weights.get(path)!)),
        ...trained.map((path) => sourceOf(path, gradients.get(path)!)),
      ]);
      if (rank > 0) return;
      const gradientsByPath = new Map(trained.map((path, i) => [path, found[paths.length + i]!]));
      input.recorded(
        live.done,
        paths.map((path, i) => ({
          path,
          shape: wholeShape(parts, path, weights.get(path)!.shape),
          weights: found[i]!,
          ...(gradientsByPath.has(path) && { gradients: gradientsByPath.get(path)! }),
        })),
      );
    } finally {
      for (const array of gradients.values()) backend.free(array);
      if (everySteps === undefined) steps.forget();
    }
  };

  return {
    before,
    isDue: async (done) => {
      const isRequested = await requests.isRequested();
      return isRequested || isDue(done, everySteps);
    },
  };
};

/** Returns the shape of a complete parameter. @param own Shape of this rank's shard. */
const wholeShape = ({ sharding, mesh }: Parts, path: string, own: readonly number[]): number[] => {
  const whole = [...own];
  for (const { axis, dim } of sharding(path)) whole[dim]! *= mesh[axis] ?? 1;
  return whole;
};
