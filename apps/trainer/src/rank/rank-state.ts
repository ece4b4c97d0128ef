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
import { type NamedTensors, partContent, rankFile, readPart, sharedFile } from "../checkpoint/checkpoint.ts";
import { ownPartOf, shardFile, shardFilesIn, wholeTensors } from "../checkpoint/checkpoint-shards.ts";
import { CheckpointError } from "../errors.ts";
import { nodeFiles } from "../files/files.ts";
import type { Job } from "../job/job.ts";
import { placeOf, replicasAxisAlong } from "../job/mesh.ts";
import { gatherSlices, sliceOfWhole, wholeOfGathered } from "../building/sharded-optimizer.ts";
import type { Assignment } from "./messages.ts";
import type { PartsToWrite } from "../checkpoint/part-writer.ts";
import { pretrainedWeights } from "../pretrained/pretrained-weights.ts";
import {
  type DeviceState,
  initState,
  type Layout,
  type Parts,
  splitLeaves,
  stateSharding,
} from "../step/train-state.ts";

/**
 * Make the state that a rank begins with: a new one, of the weights that the job names if it does, or that of a
 * checkpoint. All ranks make the same one, but for residuals.
 *
 * @throws CheckpointError, PretrainedError for files that do not fit.
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
      // A mean begins with the weights that a run begins with.
      const from = resume === undefined ? path.replace(/^average\./, "params.") : path;
      const [whole, shards] = [savedOf(from), shardsOf(path)];
      const slice = slices.get(path);
      if (resume !== undefined && whole === undefined && (shards.length > 0 || slice !== undefined))
        throw new CheckpointError(`${resume.folder} has not all parts of ${path}; resume from another run`);
      if (whole === undefined) return leaves[i]!; // on its way, which nothing is in a saved state; or the optimizer's
      backend.free(leaves[i]!);
      const part = ownPartOf(whole, shards, { place, mesh: parts.mesh });
      return backend.upload(slice ? sliceOfWhole(part, place[slice.axis]!, parts.mesh[slice.axis]!) : part);
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
    shardFilesIn(byName).map(({ cuts, names: own }) => ({ cuts, files: own.map(read) })),
  );
};

/** Brings the slices of an array that the ranks along an axis have to all of them, one behind the other. */
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
 * Copy what a rank saves of a settled state off the device: rank 0 what all share, the first rank of those with the
 * same part of something that part, each rank what it has alone. Of slices, the first rank of those that have them
 * saves the whole, which is gathered tensor by tensor: all ranks call this together.
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
  /** The file with what all ranks know of a path, where this one is the first to have it. */
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
