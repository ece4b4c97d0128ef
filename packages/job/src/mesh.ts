import { meshPartition } from "@skein/collectives";
import { gradientWorkers } from "@skein/second-order";
import { InvariantError, type Mesh, type MeshCoordinates, shardAxes, type Sharding } from "@skein/tensor-core";
import { hasShards } from "./experts-of.ts";
import type { Job, KfacJob, MeshJob } from "./job.ts";

/** Mesh axis of ranks with different samples. Without `mesh.tensor`, the axis contains all ranks. */
export const dataAxis = "data";

/** Mesh axis of ranks among which the experts of each layer are divided. */
export const expertAxis = "expert";

/** Mesh axis of ranks that have copies of the same experts. */
export const expertReplicasAxis = "expert-replicas";

/** Returns the mesh axes whose product is the expert axis, outermost first: one axis per level of token exchange. */
export const expertLevelAxes = (mesh: Pick<MeshJob, "expert" | "expertLevels">): readonly string[] =>
  expertLevelsOf(mesh).map(({ axis }) => axis);

/** Returns the mesh axes of the expert levels, with the number of ranks along each axis. */
export const expertLevelsOf = ({
  expert,
  expertLevels = [],
}: Pick<MeshJob, "expert" | "expertLevels">): readonly { readonly axis: string; readonly size: number }[] =>
  expertLevels.length > 1
    ? expertLevels.map((size, i) => ({ axis: `${expertAxis}-level-${i + 1}`, size }))
    : [{ axis: expertAxis, size: expert }];

/** Mesh axis of ranks that have the same samples and shard the matrices of each block. */
export const tensorAxis = "tensor";

/**
 * Mesh axis of all ranks that hold shards of a layer's experts. Exists only if ranks shard the hidden features of
 * experts.
 */
export const expertShardsAxis = "expert-shards";

/** Mesh axis of ranks that have copies of the same expert shards. */
export const expertShardReplicasAxis = "expert-shard-replicas";

/** Mesh axis of all ranks. Exists only if some ranks have the same samples. */
export const worldAxis = "world";

/** Mesh axis of ranks on the same host. */
export const insideHostsAxis = "inside-hosts";
/** Mesh axis of ranks that have the same index within their hosts. */
export const acrossHostsAxis = "across-hosts";

/** Mesh axes of the rank grid of K-FAC: `workers` contains the ranks of a column, `receivers` the ranks of a row. */
export const gridAxes = { workers: "gradient-workers", receivers: "gradient-receivers" } as const;

/** Whether the ranks of a job form a grid of gradient workers and receivers. */
export const hasGrid = ({ form }: KfacJob): boolean =>
  form === "kaisa" || form === "pad" || form === "dp-hybrid" || form === "auto";

type Groups = readonly (readonly number[])[];

/**
 * Partitions ranks into groups along a product of mesh axes. The ranks of a group have equal coordinates along all axes
 * except those in `along`.
 *
 * @param mesh sizes of the axes, slowest axis first.
 */
const productPartition = (mesh: Mesh, along: readonly string[]): number[][] => {
  const numRanks = Object.values(mesh).reduce((product, size) => product * size, 1);
  const others = Object.keys(mesh).filter((axis) => !along.includes(axis));
  const coordinatesByAxis = others.map((axis) => {
    const places: number[] = [];
    for (const group of meshPartition(mesh, axis)) for (const [place, rank] of group.entries()) places[rank] = place;
    return places;
  });
  const ranks = Array.from({ length: numRanks }, (_, rank) => rank);
  return [...Map.groupBy(ranks, (rank) => coordinatesByAxis.map((places) => places[rank]).join()).values()];
};

/**
 * Returns the mesh axes of data, expert and tensor parallelism, and the products of axes along which gradients are
 * averaged, each with groups of ranks.
 */
const parallelismAxes = ({ ranks, mesh: job, model }: Job): (readonly [axis: string, groups: Groups])[] => {
  const { expert, tensor } = job;
  const levels = expertLevelAxes(job);
  const mesh = {
    replica: ranks / (expert * tensor),
    ...Object.fromEntries(expertLevelsOf(job).map(({ axis, size }) => [axis, size])),
    tensor, // innermost, because tensor-parallel ranks send most: activations of every matrix
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

/**
 * Returns the meshes of algorithms that arrange all ranks in a grid: hierarchical top-k and K-FAC. One mesh per
 * algorithm.
 */
const algorithmAxes = ({ ranks, compression, optimizer }: Job): Mesh[] => {
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

/** Partitions ranks along each axis of a job's mesh; each rank is in one group per axis. */
export const meshGroups = (job: Job): { readonly [dataAxis]: Groups; readonly [axis: string]: Groups } =>
  Object.fromEntries([
    ...parallelismAxes(job),
    ...algorithmAxes(job).flatMap((axes) =>
      Object.keys(axes).map((axis) => [axis, meshPartition(axes, axis)] as const),
    ),
  ]) as { readonly [dataAxis]: Groups; readonly [axis: string]: Groups };

/** Returns the number of ranks along each axis of a job. */
export const meshOf = (job: Job): Mesh =>
  Object.fromEntries(Object.entries(meshGroups(job)).map(([axis, [group]]) => [axis, group!.length]));

/** Returns the axis that contains all ranks. */
export const everyRankAxis = (mesh: Mesh): string => (Object.hasOwn(mesh, worldAxis) ? worldAxis : dataAxis);

/** Mesh axis of the ranks that hold the same shard of a parameter, by the axes along which the parameter is sharded. */
const replicasAlong: Readonly<Record<string, string>> = {
  [expertAxis]: expertReplicasAxis,
  [tensorAxis]: dataAxis,
  [`${expertAxis},${tensorAxis}`]: expertShardReplicasAxis,
};

/** Returns the axis of the ranks that hold the same shard of a parameter that is sharded along `axes`. */
export const replicasAxisAlong = (axes: readonly string[]): string => {
  const replicas = replicasAlong[axes.join()];
  if (replicas === undefined) throw new InvariantError(`parameters are sharded along axes "${axes.join(", ")}"`);
  return replicas;
};

/**
 * Returns a function that maps the path of a parameter to an axis: the ranks along the axis hold equal values of the
 * parameter and average its gradient. The axis is the product of all axes along which the parameter is not sharded.
 */
export const replicasAxisOf =
  ({ sharding, mesh }: { readonly sharding: Sharding; readonly mesh: Mesh }): ((path: string) => string) =>
  (path) => {
    const axes = shardAxes(sharding(path));
    return axes.length === 0 ? everyRankAxis(mesh) : replicasAxisAlong(axes);
  };

/** Restricts a sharding to axes with several ranks. A parameter that one rank holds completely is not sharded. */
export const shardingOn =
  (mesh: Mesh, sharding: Sharding): Sharding =>
  (path) =>
    sharding(path).filter(({ axis }) => (mesh[axis] ?? 1) > 1);

/** Returns the coordinates of a rank along each axis. */
export const placeOf = (job: Job, rank: number): MeshCoordinates =>
  Object.fromEntries(
    Object.entries(meshGroups(job)).map(([axis, groups]) => [
      axis,
      groups.find((group) => group.includes(rank))!.indexOf(rank),
    ]),
  );

/** Returns the number of shares into which ranks divide each batch: the number of ranks with different samples. */
export const numBatchParts = ({ ranks, mesh }: Pick<Job, "ranks" | "mesh">): number => ranks / mesh.tensor;

/**
 * Returns the number of samples that a rank computes at the same time: its share of a batch, or one microbatch of that
 * share if gradients are accumulated.
 */
export const samplesAtOnce = (job: Pick<Job, "ranks" | "mesh" | "batch" | "accumulate">): number =>
  job.batch / numBatchParts(job) / (job.accumulate ?? 1);

/** Returns the index of a rank's share of each batch, and the number of shares. */
export const batchPartOf = (job: Job, rank: number): { readonly rank: number; readonly worldSize: number } => ({
  rank: placeOf(job, rank)[dataAxis]!,
  worldSize: numBatchParts(job),
});

/** Returns the coordinates of the first rank. */
export const firstCoordinates = (mesh: Mesh): MeshCoordinates =>
  Object.fromEntries(Object.keys(mesh).map((axis) => [axis, 0]));
