import { type HostData, NdArray, type Shard, type TensorSpec } from "@skein/tensor-core";
import type { NamedTensors } from "./checkpoint.ts";
import { expertAxis } from "./mesh.ts";

// A tensor that ranks share out lies in as many files as it has parts, each part once. The name of a file says along
// which dimension its parts lie, so that a checkpoint is read by whom shares out otherwise, or not at all.

/** Files with parts along dimension 0 of the axis "expert" have this name instead of one with axis and dimension. */
const expertsName = "experts";

const suffix = ".safetensors";

const familyOf = ({ axis, dim }: Shard): string =>
  axis === expertAxis && dim === 0 ? expertsName : `${axis}-dim${dim}`;

/** The file with the parts that ranks at a place along an axis have. */
export const shardFile = (shard: Shard, place: number): string => `${familyOf(shard)}-${place}${suffix}`;

/** Files that hold the parts of some tensors, in the order of the parts. */
export interface ShardFiles {
  readonly dim: number;
  readonly names: readonly string[];
}

/** Those of a checkpoint. @param files by name. */
export const shardFilesIn = (files: ReadonlyMap<string, unknown>): ShardFiles[] => {
  const found: ShardFiles[] = [];
  for (const name of files.keys()) {
    const [, family, dim] = /^(experts|[a-z-]+-dim(\d))-0\.safetensors$/.exec(name) ?? [];
    if (family === undefined) continue;
    const names: string[] = [];
    while (files.has(`${family}-${names.length}${suffix}`)) names.push(`${family}-${names.length}${suffix}`);
    found.push({ dim: Number(dim ?? 0), names });
  }
  return found;
};

/** A shape whose size along a dimension is another. */
const resized = (shape: readonly number[], dim: number, size: number): number[] =>
  shape.map((own, at) => (at === dim ? size : own));

const productOf = (sizes: readonly number[]): number => sizes.reduce((product, size) => product * size, 1);

/** What a part is as a whole. @param numParts that it has. */
export const wholeSpec = ({ dtype, shape }: TensorSpec, dim: number, numParts: number): TensorSpec => ({
  dtype,
  shape: resized(shape, dim, shape[dim]! * numParts),
});

/** Copy runs of as many entries as each has from one array to another, each with a stride and a first entry. */
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

/** Parts of one shape put together along a dimension. */
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

/** The part at a place, of as many equal ones along a dimension. */
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

/** A tensor of a checkpoint as a whole, by path; undefined where no file has it, or not all that should. */
export const wholeTensors = (
  shared: NamedTensors,
  families: readonly { readonly dim: number; readonly files: readonly NamedTensors[] }[],
): ((path: string) => NdArray | undefined) => {
  return (path) => {
    const family = families.find(({ files }) => files[0]!.has(path));
    if (family === undefined) return shared.get(path);
    const parts = family.files.flatMap((tensors) => tensors.get(path) ?? []);
    return parts.length === family.files.length ? joinParts(parts, family.dim) : undefined;
  };
};
