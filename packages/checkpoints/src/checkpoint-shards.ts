import {
  type HostData,
  type Mesh,
  type MeshCoordinates,
  NdArray,
  type Shard,
  type TensorSpec,
} from "@skein/tensor-core";
import type { NamedTensors } from "./checkpoint.ts";

// A sharded tensor is stored in one file per shard. The file name contains the sharded dimensions, so that a checkpoint
// can be read with another sharding, or without sharding.

/** Mesh axis whose shards along dimension 0 are experts: `expertAxis` of `@skein/job`, fixed by the file format. */
const expertAxis = "expert";
/** File name prefix of expert shards. It replaces the axis and dimension in the file name. */
const expertsName = "experts";

const suffix = ".safetensors";

const familyOf = ({ axis, dim }: Shard): string =>
  axis === expertAxis && dim === 0 ? expertsName : `${axis}-dim${dim}`;

/** Returns the name of the file with the shards of the ranks at a mesh coordinate. */
export const shardFile = (shards: readonly Shard[], place: MeshCoordinates): string =>
  `${shards.map((shard) => `${familyOf(shard)}-${place[shard.axis]!}`).join("-")}${suffix}`;

/** Division of one tensor dimension into `count` equal shards. */
export interface Cut {
  readonly dim: number;
  readonly count: number;
}

/** Returns the cuts that divide a tensor into the given shards. */
export const cutsOf = (shards: readonly Shard[], mesh: Mesh): Cut[] =>
  shards.map(({ axis, dim }) => ({ dim, count: mesh[axis]! }));

/** Names of the files that contain the shards of some tensors. */
export interface ShardFiles {
  readonly cuts: readonly Cut[];
  /** File names in shard order; the index along the last cut varies fastest. */
  readonly names: readonly string[];
}

/** Returns all combinations of shard indices, one index per cut; the last index varies fastest. */
const partIndices = (cuts: readonly Cut[]): number[][] =>
  cuts.reduce<number[][]>(
    (places, { count }) => places.flatMap((place) => Array.from({ length: count }, (_, own) => [...place, own])),
    [[]],
  );

/**
 * Finds the sharded files of a checkpoint.
 * @param files files of the checkpoint, by name.
 */
export const shardFilesIn = (files: ReadonlyMap<string, unknown>): ShardFiles[] => {
  const found: ShardFiles[] = [];
  for (const first of files.keys()) {
    if (!/^((experts|[a-z][a-z-]*-dim\d)-0[-.])+safetensors$/.test(first)) continue;
    const families = [...first.matchAll(/(experts|[a-z][a-z-]*-dim\d)-0[-.]/g)].map(([, family]) => family!);
    const nameOf = (place: readonly number[]): string =>
      `${families.map((family, i) => `${family}-${place[i]!}`).join("-")}${suffix}`;
    const cuts = families.map((family, along) => {
      let count = 1;
      while (files.has(nameOf(families.map((_, i) => (i === along ? count : 0))))) count += 1;
      return { dim: Number(/-dim(\d)$/.exec(family)?.[1] ?? 0), count };
    });
    found.push({ cuts, names: partIndices(cuts).map(nameOf) });
  }
  return found;
};

/** Returns `shape` with `size` along dimension `dim`. */
const resized = (shape: readonly number[], dim: number, size: number): number[] =>
  shape.map((own, at) => (at === dim ? size : own));

const productOf = (sizes: readonly number[]): number => sizes.reduce((product, size) => product * size, 1);

/** Returns the spec of the whole tensor from the spec of one shard. */
export const wholeSpec = ({ dtype, shape }: TensorSpec, cuts: readonly Cut[]): TensorSpec => ({
  dtype,
  shape: cuts.reduce<readonly number[]>((whole, { dim, count }) => resized(whole, dim, whole[dim]! * count), shape),
});

/**
 * Copies `count` runs of `length` entries from one array to another. `first` and `stride` are the start offset and the
 * distance between runs in each array, in entries.
 */
const copyRuns = ({
  from,
  to,
  length,
  count,
}: { readonly length: number; readonly count: number } & Record<
  "from" | "to",
  { readonly data: HostData; readonly first: number; readonly stride: number }
>): void => {
  for (let i = 0; i < count; i++) {
    const begin = from.first + i * from.stride;
    to.data.set(from.data.subarray(begin, begin + length) as never, to.first + i * to.stride);
  }
};

const emptyLike = ({ dtype, data }: NdArray, shape: readonly number[]): NdArray =>
  new NdArray(dtype, shape, new (data.constructor as new (length: number) => HostData)(productOf(shape)));

/** Concatenates arrays of equal shape along a dimension. */
export const joinParts = (parts: readonly NdArray[], dim: number): NdArray => {
  const { shape } = parts[0]!;
  const whole = emptyLike(parts[0]!, resized(shape, dim, shape[dim]! * parts.length));
  const length = productOf(shape.slice(dim));
  for (const [i, { data }] of parts.entries())
    copyRuns({
      from: { data, first: 0, stride: length },
      to: { data: whole.data, first: i * length, stride: parts.length * length },
      length,
      count: productOf(shape.slice(0, dim)),
    });
  return whole;
};

/** Returns part number `place` (from 0) of `numParts` equal parts of an array along a dimension. */
export const partOfWhole = (whole: NdArray, dim: number, place: number, numParts: number): NdArray => {
  const { shape, data } = whole;
  const part = emptyLike(whole, resized(shape, dim, shape[dim]! / numParts));
  const length = productOf(part.shape.slice(dim));
  copyRuns({
    from: { data, first: place * length, stride: numParts * length },
    to: { data: part.data, first: 0, stride: length },
    length,
    count: productOf(shape.slice(0, dim)),
  });
  return part;
};

/** Returns a rank's shard of a whole tensor. */
export const ownPartOf = (
  whole: NdArray,
  shards: readonly Shard[],
  { place, mesh }: { readonly place: MeshCoordinates; readonly mesh: Mesh },
): NdArray => shards.reduce((part, { axis, dim }) => partOfWhole(part, dim, place[axis]!, mesh[axis]!), whole);

/** Concatenates all shards, in the order of `ShardFiles`. */
const joinAll = (arrays: readonly NdArray[], cuts: readonly Cut[]): NdArray =>
  cuts.reduceRight(
    (joined, { dim, count }) =>
      Array.from({ length: joined.length / count }, (_, i) => joinParts(joined.slice(i * count, (i + 1) * count), dim)),
    arrays,
  )[0]!;

/**
 * Returns a function that reads a whole tensor of a checkpoint by path. The function returns undefined if no file
 * contains the tensor, or some shards are missing.
 */
export const wholeTensors = (
  shared: NamedTensors,
  families: readonly { readonly cuts: readonly Cut[]; readonly files: readonly NamedTensors[] }[],
): ((path: string) => NdArray | undefined) => {
  return (path) => {
    const family = families.find(({ files }) => files[0]!.has(path));
    if (family === undefined) return shared.get(path);
    const arrays = family.files.flatMap((tensors) => tensors.get(path) ?? []);
    return arrays.length === family.files.length ? joinAll(arrays, family.cuts) : undefined;
  };
};
