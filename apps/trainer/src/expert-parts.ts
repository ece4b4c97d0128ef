import { type DeviceArray, type HostData, NdArray, type Sharding } from "@skein/tensor-core";
import { expertsFilesIn, type NamedTensors, readPart } from "./checkpoint.ts";
import { CheckpointError } from "./errors.ts";
import { nodeFiles } from "./files.ts";
import type { Job } from "./job.ts";
import { partOf } from "./mesh.ts";
import type { Assignment } from "./messages.ts";

/** Rows `first` to `end` of parts that lie one after another along dimension 0. */
const rowsOf = (parts: readonly NdArray[], first: number, end: number): NdArray => {
  const { dtype, shape, data } = parts[0]!;
  const [rows, ...rest] = shape as [number, ...number[]];
  const each = data.length / rows;
  const result = new (data.constructor as new (length: number) => HostData)((end - first) * each);
  for (const [i, part] of parts.entries()) {
    const [from, to] = [Math.max(first, i * rows), Math.min(end, (i + 1) * rows)];
    if (from < to)
      result.set(part.data.subarray((from - i * rows) * each, (to - i * rows) * each) as never, (from - first) * each);
  }
  return new NdArray(dtype, [end - first, ...rest], result);
};

/**
 * What a rank has of that which ranks share out, read from a checkpoint that as many ranks or another number of them
 * have shared out: a part may lie in several files, or be a part of one.
 *
 * @param own leaves of the rank's state, by path.
 * @throws CheckpointError where a checkpoint does not have them.
 */
export const readOwnParts = (
  { folder, files }: NonNullable<Assignment["resume"]>,
  own: ReadonlyMap<string, DeviceArray>,
  job: Job,
  rank: number,
  sharding: Sharding,
): NamedTensors => {
  if (own.size === 0) return new Map();
  const byName = new Map(files.map((file) => [file.name, file]));
  const saved = expertsFilesIn(byName).map((name) => readPart(nodeFiles, folder, byName.get(name)!));
  const place = partOf(job, rank);
  return new Map(
    [...own].map(([path, { shape }]) => {
      const parts = saved.map((tensors) => tensors.get(path));
      if (parts.length === 0 || parts.some((part) => part === undefined) || sharding(path)!.dim !== 0)
        throw new CheckpointError(`${folder} has not all parts of ${path}; resume from another run`);
      const rows = shape[0]!;
      return [path, rowsOf(parts as NdArray[], place * rows, (place + 1) * rows)];
    }),
  );
};
