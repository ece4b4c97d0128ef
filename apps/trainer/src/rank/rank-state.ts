import {
  type NamedTensors,
  ownPartOf,
  partContent,
  type PartsToWrite,
  rankFile,
  readPart,
  shardFile,
  shardFilesIn,
  sharedFile,
  wholeTensors,
} from "@skein/checkpoints/node";
import { CheckpointError, nodeFiles } from "@skein/cli/node";
import { type Job, placeOf, replicasAxisAlong } from "@skein/job/node";
import {
  type DeviceState,
  gatherSlices,
  initState,
  type Layout,
  type Parts,
  sliceOfWhole,
  splitLeaves,
  stateSharding,
  wholeOfGathered,
} from "@skein/step/node";
import {
  type Backend,
  type Communicators,
  type DeviceArray,
  flattenTree,
  jit,
  leafPaths,
  randomKey,
  type NdArray,
  shardAxes,
  type SpanSink,
  type Tensor,
  unflattenTree,
} from "@skein/tensor-core";
import type { Assignment } from "./messages.ts";
import { pretrainedWeights } from "../pretrained/pretrained-weights.ts";

/**
 * Creates the initial state of a rank: the state of a checkpoint, or a new state, with pretrained weights if the job
 * names any. The state is equal on all ranks, except for residuals.
 *
 * @throws CheckpointError or PretrainedError if the files do not match the job.
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
  const { own, slices } = splitLeaves(fresh, parts);
  const savedOf =
    resume === undefined
      ? await pretrainedWeights(job)
      : savedTensors(resume, own.size > 0 ? [sharedFile, rankFile(rank)] : [sharedFile]);
  if (savedOf === undefined) return fresh;
  const shardsOf = stateSharding(parts.sharding, fresh.params);
  const place = placeOf(job, rank);
  const { leaves, structure } = flattenTree<DeviceArray>(fresh);
  return unflattenTree(
    structure,
    leafPaths(fresh).map((path, i) => {
      // The moving average of the weights starts from the initial weights of the run.
      const from = resume === undefined ? path.replace(/^average\./, "params.") : path;
      const [whole, shards] = [savedOf(from), shardsOf(path)];
      const slice = slices.get(path);
      if (resume !== undefined && whole === undefined && (shards.length > 0 || slice !== undefined))
        throw new CheckpointError(`${resume.folder} does not have all parts of ${path}; resume from another run`);
      if (whole === undefined) return leaves[i]!; // pending gradients; with pretrained weights, all other state
      backend.free(leaves[i]!);
      const part = ownPartOf(whole, shards, { place, mesh: parts.mesh });
      return backend.upload(slice ? sliceOfWhole(part, place[slice.axis]!, parts.mesh[slice.axis]!) : part);
    }),
  );
};

/**
 * Reads the tensors of a checkpoint. Each tensor is returned whole, regardless of its sharding, and is assembled when
 * requested.
 *
 * @param names Files to read in addition to the files with shards.
 */
const savedTensors = (
  { folder, files }: NonNullable<Assignment["resume"]>,
  names: readonly string[],
): ReturnType<typeof wholeTensors> => {
  const byName = new Map(files.map((file) => [file.name, file]));
  // Checked again, because the controller may have checked another copy of the file, or an earlier version.
  const read = (name: string): NamedTensors => readPart(nodeFiles, folder, byName.get(name)!);
  return wholeTensors(
    new Map(names.filter((name) => byName.has(name)).flatMap((name) => [...read(name)])),
    shardFilesIn(byName).map(({ cuts, names: own }) => ({ cuts, files: own.map(read) })),
  );
};

/**
 * Gathers the slices of an array from the ranks along an axis. Returns the slices, concatenated in rank order, on all
 * of these ranks.
 */
export type SliceGatherer = (own: DeviceArray, axis: string) => Promise<DeviceArray>;

export const sliceGatherer = (backend: Backend, communicators: Communicators): SliceGatherer & { release(): void } => {
  const alongAxes = new Map<string, ReturnType<typeof alongAxis>>();
  const alongAxis = (axis: string) => jit((own: Tensor) => gatherSlices(own, axis), backend, { communicators });
  const gather: SliceGatherer = (own, axis) => {
    const compiled = alongAxes.get(axis) ?? alongAxis(axis);
    alongAxes.set(axis, compiled);
    return compiled(own as never);
  };
  return Object.assign(gather, { release: () => alongAxes.forEach((compiled) => compiled.release()) });
};

/**
 * Copies from the device the tensors that this rank saves in a checkpoint. The state must have no pending gradients.
 * Rank 0 saves the shared tensors. If several ranks have the same shard, the first of these ranks saves the shard. Each
 * rank saves its own residuals. Slices of an array are gathered, one tensor at a time, and the first rank of the group
 * saves the complete tensor. Must be called on all ranks.
 */
export const copyParts = async (
  state: DeviceState,
  { job, layout, gather }: { readonly job: Job; readonly layout: Layout; readonly gather: SliceGatherer },
  rank: number,
  backend: Backend,
): Promise<PartsToWrite["parts"]> => {
  const { shared, parts, slices, own } = splitLeaves(state, layout);
  const place = placeOf(job, rank);
  const shardsOf = stateSharding(layout.sharding, state.params);
  /**
   * Returns the file to which this rank saves a tensor that several ranks have. Undefined: another rank saves the
   * tensor.
   */
  const commonFile = (path: string): string | undefined => {
    const shards = shardsOf(path);
    if (shards.length === 0) return rank === 0 ? sharedFile : undefined;
    return place[replicasAxisAlong(shardAxes(shards))] === 0 ? shardFile(shards, place) : undefined;
  };
  const files = new Map<string, Map<string, NdArray>>();
  const add = (name: string, path: string, array: NdArray): void => {
    const tensors = files.get(name) ?? new Map<string, NdArray>();
    files.set(name, tensors.set(path, array));
  };
  const common = new Map([shared, ...parts.map(({ leaves }) => leaves)].flatMap((leaves) => [...leaves]));
  for (const path of leafPaths(state)) {
    const [leaf, slice, alone, name] = [common.get(path), slices.get(path), own.get(path), commonFile(path)];
    if (alone !== undefined) add(rankFile(rank), path, await backend.download(alone));
    else if (leaf !== undefined && name !== undefined) add(name, path, await backend.download(leaf));
    else if (slice !== undefined) {
      const gathered = await gather(slice.leaf, slice.axis);
      if (name !== undefined) add(name, path, wholeOfGathered(await backend.download(gathered), slice.shape));
      backend.free(gathered);
    }
  }
  return [...files].map(([name, tensors]) => ({ name, content: partContent(tensors) }));
};
