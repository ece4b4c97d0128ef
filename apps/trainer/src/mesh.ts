import { meshPartition } from "@skein/collectives";
import { gradientWorkers } from "@skein/second-order";
import { InvariantError, type Mesh, type MeshPlace, type Sharding } from "@skein/tensor-core";
import { acrossHostsAxis, insideHostsAxis } from "./build-exchange.ts";
import type { Job } from "./job.ts";
import { hasGrid } from "./optimizer-schema.ts";

/** The mesh axis along which ranks share the batch: all of them. */
export const dataAxis = "data";

/** Along this one lie ranks that share out the experts of each layer. */
export const expertAxis = "expert";

/** And along this one those that have the same experts. */
export const expertReplicasAxis = "expert-replicas";

/**
 * The axes of the mesh whose product is that of experts, from the outermost: of each level that tokens travel over.
 */
export const expertLevelAxes = (levels: readonly number[] = []): readonly string[] =>
  levels.length > 1 ? levels.map((_, i) => `${expertAxis}-level-${i + 1}`) : [expertAxis];

/** Axes of the grid of K-FAC's gradient workers: along the first lie the ranks of a column, the second of a row. */
export const gridAxes = { workers: "gradient-workers", receivers: "gradient-receivers" } as const;

/** Axes that share out the ranks, each set by itself: the last one runs fastest. */
const sharedOut = ({ ranks, mesh, model, compression, optimizer }: Job): Mesh[] => {
  const sets: Mesh[] = [];
  const levels = (model.kind === "gpt" ? model.experts?.levels : undefined) ?? [];
  if (mesh.expert > 1) {
    const replicas = { [expertReplicasAxis]: ranks / mesh.expert };
    sets.push({ ...replicas, [expertAxis]: mesh.expert });
    const axes = expertLevelAxes(levels);
    if (axes.length > 1) sets.push({ ...replicas, ...Object.fromEntries(axes.map((axis, i) => [axis, levels[i]!])) });
  }
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

/** Ranks along each axis of a job. */
export const meshOf = (job: Job): Mesh => Object.assign({ [dataAxis]: job.ranks }, ...sharedOut(job)) as Mesh;

/**
 * The groups of ranks along each axis of a job's mesh, each rank in one: all of them along the data axis, which the
 * other axes share out.
 */
export const meshGroups = (
  job: Job,
): { readonly [dataAxis]: readonly number[][]; readonly [axis: string]: readonly number[][] } => {
  const groups = sharedOut(job).flatMap((axes) =>
    Object.keys(axes).map((axis) => [axis, meshPartition(axes, axis)] as const),
  );
  return {
    ...Object.fromEntries(groups),
    [dataAxis]: [Array.from({ length: job.ranks }, (_, rank) => rank)],
  };
};

/** The axis along which ranks hold the same of the parameter at a path, and average its gradient. */
export const replicasAxisOf =
  ({ sharding, mesh }: { readonly sharding: Sharding; readonly mesh: Mesh }): ((path: string) => string) =>
  (path) => {
    const shard = sharding(path);
    if (shard === undefined || (mesh[shard.axis] ?? 1) === 1) return dataAxis;
    if (shard.axis !== expertAxis) throw new InvariantError(`"${path}" is shared out along axis "${shard.axis}"`);
    return expertReplicasAxis;
  };

/** The place of a rank along each axis. */
export const placeOf = (job: Job, rank: number): MeshPlace =>
  Object.fromEntries(
    Object.entries(meshGroups(job)).map(([axis, groups]) => [
      axis,
      groups.find((group) => group.includes(rank))!.indexOf(rank),
    ]),
  );

/** The number of the part that a rank has of what ranks share out. */
export const partOf = (job: Job, rank: number): number => placeOf(job, rank)[expertAxis] ?? 0;

/** The place of the first rank along each axis. */
export const firstPlace = (mesh: Mesh): MeshPlace => Object.fromEntries(Object.keys(mesh).map((axis) => [axis, 0]));
