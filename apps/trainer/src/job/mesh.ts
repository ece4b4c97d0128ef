import { meshPartition } from "@skein/collectives";
import { gradientWorkers } from "@skein/second-order";
import { InvariantError, type Mesh, type MeshPlace, shardAxes, type Sharding } from "@skein/tensor-core";
import { hasShards } from "./experts-of.ts";
import type { Job, MeshJob } from "./job.ts";
import { hasGrid } from "./optimizer-schema.ts";

/** The mesh axis along which ranks have different samples. Without `mesh.tensor` all ranks lie along it. */
export const dataAxis = "data";

/** Along this one lie ranks that share out the experts of each layer. */
export const expertAxis = "expert";

/** And along this one those that have the same experts. */
export const expertReplicasAxis = "expert-replicas";

/**
 * The axes of the mesh whose product is that of experts, from the outermost: of each level that tokens travel over.
 */
export const expertLevelAxes = (mesh: Pick<MeshJob, "expert" | "expertLevels">): readonly string[] =>
  expertLevelsOf(mesh).map(({ axis }) => axis);

/** The same, with the ranks along each. */
export const expertLevelsOf = ({
  expert,
  expertLevels = [],
}: Pick<MeshJob, "expert" | "expertLevels">): readonly { readonly axis: string; readonly size: number }[] =>
  expertLevels.length > 1
    ? expertLevels.map((size, i) => ({ axis: `${expertAxis}-level-${i + 1}`, size }))
    : [{ axis: expertAxis, size: expert }];

/** Along this one lie ranks that have the same samples and share out the matrices of each block. */
export const tensorAxis = "tensor";

/** Where ranks share out the hidden width of experts too: all that have shards of the same layer's experts. */
export const expertShardsAxis = "expert-shards";

/** And along this one those that have the same shards of the same experts. */
export const expertShardReplicasAxis = "expert-shard-replicas";

/** All ranks, where not all have different samples. */
export const worldAxis = "world";

/** Axes of ranks that share a host, and of those that stand in the same place on each. */
export const insideHostsAxis = "inside-hosts";
export const acrossHostsAxis = "across-hosts";

/** Axes of the grid of K-FAC's gradient workers: along the first lie the ranks of a column, the second of a row. */
export const gridAxes = { workers: "gradient-workers", receivers: "gradient-receivers" } as const;

type Groups = readonly (readonly number[])[];

/**
 * The groups of a product of axes: ranks that have one place along all others.
 *
 * @param mesh sizes of axes, from the slowest to the fastest.
 */
const productPartition = (mesh: Mesh, along: readonly string[]): number[][] => {
  const numRanks = Object.values(mesh).reduce((product, size) => product * size, 1);
  const others = Object.keys(mesh).filter((axis) => !along.includes(axis));
  const placesOf = others.map((axis) => {
    const places: number[] = [];
    for (const group of meshPartition(mesh, axis)) for (const [place, rank] of group.entries()) places[rank] = place;
    return places;
  });
  const ranks = Array.from({ length: numRanks }, (_, rank) => rank);
  return [...Map.groupBy(ranks, (rank) => placesOf.map((places) => places[rank]).join()).values()];
};

/** Axes of what ranks share out beside the batch, and the products of them along which gradients are averaged. */
const sharedOut = ({ ranks, mesh: job, model }: Job): (readonly [axis: string, groups: Groups])[] => {
  const { expert, tensor } = job;
  const levels = expertLevelAxes(job);
  const mesh = {
    replica: ranks / (expert * tensor),
    ...Object.fromEntries(expertLevelsOf(job).map(({ axis, size }) => [axis, size])),
    tensor, // neighbours along the last one send most: activations of every matrix
  };
  const groups = (...along: readonly string[]): Groups => productPartition(mesh, along);
  const axes: (readonly [string, Groups])[] = [[dataAxis, groups("replica", ...levels)]];
  if (expert > 1) axes.push([expertReplicasAxis, groups("replica", "tensor")], [expertAxis, groups(...levels)]);
  if (levels.length > 1) for (const axis of levels) axes.push([axis, groups(axis)]);
  if (tensor > 1) axes.push([tensorAxis, groups("tensor")], [worldAxis, groups("replica", ...levels, "tensor")]);
  if (hasShards({ mesh: job, model }))
    axes.push([expertShardsAxis, groups(...levels, "tensor")], [expertShardReplicasAxis, groups("replica")]);
  return axes;
};

/** Axes of algorithms that send in more than one direction; each set shares out all ranks. */
const ofAlgorithms = ({ ranks, compression, optimizer }: Job): Mesh[] => {
  const sets: Mesh[] = [];
  if (compression.kind === "hierarchical-top-k") {
    const { ranksPerHost } = compression;
    sets.push({ [acrossHostsAxis]: ranks / ranksPerHost, [insideHostsAxis]: ranksPerHost });
  }
  if (optimizer.kind === "kfac" && hasGrid(optimizer)) {
    const workers = gradientWorkers(optimizer.gradientWorkers, ranks);
    if (workers > 1 && workers < ranks)
      sets.push({ [gridAxes.workers]: workers, [gridAxes.receivers]: ranks / workers });
  }
  return sets;
};

/** The groups of ranks along each axis of a job's mesh, each rank in one. */
export const meshGroups = (job: Job): { readonly [dataAxis]: Groups; readonly [axis: string]: Groups } =>
  Object.fromEntries([
    ...sharedOut(job),
    ...ofAlgorithms(job).flatMap((axes) => Object.keys(axes).map((axis) => [axis, meshPartition(axes, axis)] as const)),
  ]) as { readonly [dataAxis]: Groups; readonly [axis: string]: Groups };

/** Ranks along each axis of a job. */
export const meshOf = (job: Job): Mesh =>
  Object.fromEntries(Object.entries(meshGroups(job)).map(([axis, [group]]) => [axis, group!.length]));

/** The axis along which all ranks lie. */
export const everyRankAxis = (mesh: Mesh): string => (Object.hasOwn(mesh, worldAxis) ? worldAxis : dataAxis);

/** By the axes along which ranks hold different parts: the axis along which they hold the same. */
const replicasAlong: Readonly<Record<string, string>> = {
  [expertAxis]: expertReplicasAxis,
  [tensorAxis]: dataAxis,
  [`${expertAxis},${tensorAxis}`]: expertShardReplicasAxis,
};

/** The axis along which ranks hold the same part of what is shared out along others. */
export const replicasAxisAlong = (axes: readonly string[]): string => {
  const replicas = replicasAlong[axes.join()];
  if (replicas === undefined) throw new InvariantError(`parameters are shared out along axes "${axes.join(", ")}"`);
  return replicas;
};

/**
 * The axis along which ranks hold the same of the parameter at a path, and average its gradient: the product of all
 * axes but those that it is shared out along.
 */
export const replicasAxisOf =
  ({ sharding, mesh }: { readonly sharding: Sharding; readonly mesh: Mesh }): ((path: string) => string) =>
  (path) => {
    const axes = shardAxes(sharding(path));
    return axes.length === 0 ? everyRankAxis(mesh) : replicasAxisAlong(axes);
  };

/** Only what several ranks share out: what one rank has whole, it has as if nobody shared it out. */
export const shardingOn =
  (mesh: Mesh, sharding: Sharding): Sharding =>
  (path) =>
    sharding(path).filter(({ axis }) => (mesh[axis] ?? 1) > 1);

/** The place of a rank along each axis. */
export const placeOf = (job: Job, rank: number): MeshPlace =>
  Object.fromEntries(
    Object.entries(meshGroups(job)).map(([axis, groups]) => [
      axis,
      groups.find((group) => group.includes(rank))!.indexOf(rank),
    ]),
  );

/** Ranks with different samples: how many parts a batch has. */
export const numBatchParts = ({ ranks, mesh }: Pick<Job, "ranks" | "mesh">): number => ranks / mesh.tensor;

/** Samples that a rank computes at once: its part of a batch, or a part of that where gradients are accumulated. */
export const samplesAtOnce = (job: Pick<Job, "ranks" | "mesh" | "batch" | "accumulate">): number =>
  job.batch / numBatchParts(job) / (job.accumulate ?? 1);

/** The part of each batch that a rank takes. */
export const batchPartOf = (job: Job, rank: number): { readonly rank: number; readonly worldSize: number } => ({
  rank: placeOf(job, rank)[dataAxis]!,
  worldSize: numBatchParts(job),
});

/** The place of the first rank along each axis. */
export const firstPlace = (mesh: Mesh): MeshPlace => Object.fromEntries(Object.keys(mesh).map((axis) => [axis, 0]));
