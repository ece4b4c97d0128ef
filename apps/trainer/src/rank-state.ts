import {
  type Backend,
  type DeviceArray,
  flattenTree,
  jit,
  leafPaths,
  randomKey,
  type SpanSink,
  unflattenTree,
} from "@skein/tensor-core";
import { partContent, rankFile, readPart, sharedFile } from "./checkpoint.ts";
import { nodeFiles } from "./files.ts";
import { placeOf } from "./mesh.ts";
import type { Assignment } from "./messages.ts";
import type { PartsToWrite } from "./part-writer.ts";
import { type DeviceState, initState, type Parts, splitLeaves } from "./train-state.ts";

/**
 * Make the state that a rank begins with: a new one, or that of a checkpoint. All ranks make the same one, but for
 * residuals.
 */
export const firstState = async (
  { job, resume }: Pick<Assignment, "job" | "resume">,
  rank: number,
  parts: Parts,
  backend: Backend,
  spanSink: SpanSink | undefined,
): Promise<DeviceState> => {
  const compiled = jit(initState(parts), backend, {
    mesh: parts.mesh,
    place: placeOf(job, rank),
    name: "initial state",
    ...(spanSink && { spanSink }),
  });
  const fresh = (await compiled(randomKey(job.seed) as never)) as unknown as DeviceState;
  compiled.release();
  if (resume === undefined) return fresh;
  // Checked once more: the controller may have looked at another copy, or another hour.
  const wanted = [sharedFile, ...(splitLeaves(fresh).own.size > 0 ? [rankFile(rank)] : [])];
  const files = resume.files.filter(({ name }) => wanted.includes(name));
  const saved = new Map(files.flatMap((file) => [...readPart(nodeFiles, resume.folder, file)]));
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

/** Copy what a rank saves of a settled state off the device: rank 0 what all share, each rank what it has alone. */
export const copyParts = async (state: DeviceState, rank: number, backend: Backend): Promise<PartsToWrite["parts"]> => {
  const { shared, own } = splitLeaves(state);
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
    ...(own.size > 0 ? [await part(rankFile(rank), own)] : []),
  ];
};
