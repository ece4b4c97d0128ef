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
import { expertsFile, partContent, rankFile, readPart, sharedFile } from "./checkpoint.ts";
import { nodeFiles } from "./files.ts";
import { readOwnParts } from "./expert-parts.ts";
import type { Job } from "./job.ts";
import { expertReplicasAxis, partOf, placeOf } from "./mesh.ts";
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
  // Checked once more: the controller may have looked at another copy, or another hour.
  const { own, parts: shared } = splitLeaves(fresh, parts.sharding);
  const wanted = [sharedFile, ...(own.size > 0 ? [rankFile(rank)] : [])];
  const files = resume.files.filter(({ name }) => wanted.includes(name));
  const saved = new Map(files.flatMap((file) => [...readPart(nodeFiles, resume.folder, file)]));
  for (const [path, array] of readOwnParts(resume, shared, job, rank, stateSharding(parts.sharding, fresh.params)))
    saved.set(path, array);
  const { leaves, structure } = flattenTree<DeviceArray>(fresh);
  return unflattenTree(
    structure,
    leafPaths(fresh).map((path, i) => {
      const array = saved.get(path);
      if (array === undefined) return leaves[i]!; // nothing is on its way in a saved state
      backend.free(leaves[i]!);
      return backend.upload(array);
    }),
  );
};

/**
 * Copy what a rank saves of a settled state off the device: rank 0 what all share, the first rank of those with a part
 * of experts that part, each rank what it has alone.
 */
export const copyParts = async (
  state: DeviceState,
  { job, sharding }: { readonly job: Job; readonly sharding: Sharding },
  rank: number,
  backend: Backend,
): Promise<PartsToWrite["parts"]> => {
  const { shared, parts, own } = splitLeaves(state, sharding);
  const isFirstOfPart = (placeOf(job, rank)[expertReplicasAxis] ?? rank) === 0;
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
    ...(parts.size > 0 && isFirstOfPart ? [await part(expertsFile(partOf(job, rank)), parts)] : []),
    ...(own.size > 0 ? [await part(rankFile(rank), own)] : []),
  ];
};
