import {
  type Backend,
  type Communicators,
  type DeviceArray,
  flattenTree,
  jit,
  leafPaths,
  randomKey,
  type Sharding,
  type SpanSink,
  unflattenTree,
} from "@skein/tensor-core";
import { type NamedTensors, partContent, rankFile, readPart, sharedFile } from "./checkpoint.ts";
import { partOfWhole, shardFile, shardFilesIn, wholeTensors } from "./checkpoint-shards.ts";
import { CheckpointError } from "./errors.ts";
import { nodeFiles } from "./files.ts";
import type { Job } from "./job.ts";
import { placeOf, replicasAxisAlong } from "./mesh.ts";
import type { Assignment } from "./messages.ts";
import type { PartsToWrite } from "./part-writer.ts";
import { type DeviceState, initState, type Parts, splitLeaves, stateSharding } from "./train-state.ts";

/**
 * Make the state that a rank begins with: a new one, or that of a checkpoint. All ranks make the same one, but for
 * residuals.
 */
export const firstState = async (
  { job, resume }: Pick<Assignment, "job" | "resume">,
  rank: number,
  parts: Parts,
  backend: Backend,
  communicators: Communicators,
  spanSink: SpanSink | undefined,
): Promise<DeviceState> => {
  const compiled = jit(initState(parts), backend, {
    mesh: parts.mesh,
    place: placeOf(job, rank),
    communicators,
    name: "initial state",
    ...(spanSink && { spanSink }),
  });
  const fresh = (await compiled(randomKey(job.seed) as never)) as unknown as DeviceState;
  compiled.release();
  if (resume === undefined) return fresh;
  const { own } = splitLeaves(fresh, parts.sharding);
  const savedOf = savedTensors(resume, own.size > 0 ? [sharedFile, rankFile(rank)] : [sharedFile]);
  const shardOf = stateSharding(parts.sharding, fresh.params);
  const place = placeOf(job, rank);
  const { leaves, structure } = flattenTree<DeviceArray>(fresh);
  return unflattenTree(
    structure,
    leafPaths(fresh).map((path, i) => {
      const [whole, shard] = [savedOf(path), shardOf(path)];
      if (whole === undefined && shard !== undefined)
        throw new CheckpointError(`${resume.folder} has not all parts of ${path}; resume from another run`);
      if (whole === undefined) return leaves[i]!; // nothing is on its way in a saved state
      backend.free(leaves[i]!);
      const mine = shard && partOfWhole(whole, shard.dim, place[shard.axis]!, parts.mesh[shard.axis]!);
      return backend.upload(mine ?? whole);
    }),
  );
};

/**
 * The tensors of a checkpoint, each as a whole, whoever shared it out; put together when it is asked for.
 *
 * @param names of the files to read beside those with parts.
 */
const savedTensors = (
  { folder, files }: NonNullable<Assignment["resume"]>,
  names: readonly string[],
): ReturnType<typeof wholeTensors> => {
  const byName = new Map(files.map((file) => [file.name, file]));
  // Checked once more: the controller may have looked at another copy, or another hour.
  const read = (name: string): NamedTensors => readPart(nodeFiles, folder, byName.get(name)!);
  return wholeTensors(
    new Map(names.filter((name) => byName.has(name)).flatMap((name) => [...read(name)])),
    shardFilesIn(byName).map(({ dim, names: parts }) => ({ dim, files: parts.map(read) })),
  );
};

/**
 * Copy what a rank saves of a settled state off the device: rank 0 what all share, the first rank of those with the
 * same part of something that part, each rank what it has alone.
 */
export const copyParts = async (
  state: DeviceState,
  { job, sharding }: { readonly job: Job; readonly sharding: Sharding },
  rank: number,
  backend: Backend,
): Promise<PartsToWrite["parts"]> => {
  const { shared, parts, own } = splitLeaves(state, sharding);
  const place = placeOf(job, rank);
  const shardOf = stateSharding(sharding, state.params);
  /** Parts that this rank is the first to have, by file: what is shared out along one axis, by dimension. */
  const shards = [...parts].flatMap(([axis, leaves]) =>
    place[replicasAxisAlong(axis)] === 0
      ? [...Map.groupBy(leaves, ([path]) => shardFile(shardOf(path)!, place[axis]!))]
      : [],
  );
  const part = async (
    name: string,
    leaves: ReadonlyMap<string, DeviceArray>,
  ): Promise<PartsToWrite["parts"][number]> => {
    const arrays = new Map();
    for (const [path, leaf] of leaves) arrays.set(path, await backend.download(leaf));
    return { name, content: partContent(arrays) };
  };
  return [
    ...(rank === 0 ? [await part(sharedFile, shared)] : []),
    ...(await Promise.all(shards.map(([name, leaves]) => part(name, new Map(leaves))))),
    ...(own.size > 0 ? [await part(rankFile(rank), own)] : []),
  ];
};
