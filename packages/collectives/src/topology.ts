import { ArgumentError } from "@skein/tensor-core";

/**
 * Groups ranks by host, given the host name of each rank. Hosts are in the order of their lowest rank; ranks of a host
 * are in ascending order.
 *
 * @example
 * ```ts
 * console.log(hostsOf(["a", "a", "b", "b"])); // [[0, 1], [2, 3]]
 * ```
 */
export const hostsOf = (names: readonly string[]): number[][] => {
  const hosts = new Map<string, number[]>();
  for (const [rank, name] of names.entries()) {
    const host = hosts.get(name);
    if (host === undefined) hosts.set(name, [rank]);
    else host.push(rank);
  }
  return [...hosts.values()];
};

/**
 * Splits ranks 0 … worldSize − 1 into runs of consecutive ranks on the same host. If the ranks of every host are
 * consecutive, the runs are the hosts.
 */
export const runsOf = (hosts: readonly (readonly number[])[], worldSize: number): number[][] => {
  const hostOf = new Map(hosts.flatMap((host, index) => host.map((rank) => [rank, index] as const)));
  const runs: number[][] = [];
  for (let rank = 0; rank < worldSize; rank++) {
    if (rank > 0 && hostOf.get(rank) === hostOf.get(rank - 1)) runs.at(-1)!.push(rank);
    else runs.push([rank]);
  }
  return runs;
};

/**
 * Returns the two factors of P = `size` that are as nearly equal as possible, the larger first; [P, 1] for a prime P.
 */
export const nearlySquare = (size: number): readonly [columns: number, rows: number] => {
  let rows = Math.floor(Math.sqrt(size));
  while (size % rows !== 0) rows--;
  return [size / rows, rows];
};

/**
 * Returns the groups along one axis of a mesh of ranks, as an argument for `Communicator.split`. Ranks are laid out in
 * row-major order: the last axis varies fastest. Ranks of one group differ only in their coordinate of this axis, and
 * are in ascending order of the coordinate.
 *
 * @param mesh sizes of the axes, from the slowest to the fastest varying.
 * @throws ArgumentError if a size is not a positive integer, or the mesh does not have the axis.
 * @example
 * ```ts
 * console.log(meshPartition({ data: 2, tensor: 2 }, "data")); // [[0, 2], [1, 3]]
 * ```
 */
export const meshPartition = (mesh: Readonly<Record<string, number>>, axis: string): number[][] => {
  const axes = Object.entries(mesh);
  const at = axes.findIndex(([name]) => name === axis);
  if (at === -1)
    throw new ArgumentError(
      `the mesh has no axis "${axis}", only ${axes.map(([name]) => `"${name}"`).join(", ")}; name one of them`,
    );
  for (const [name, size] of axes) {
    if (!Number.isSafeInteger(size) || size < 1)
      throw new ArgumentError(`axis "${name}" of the mesh has size ${size}; a size is a whole number from 1`);
  }
  const product = (sizes: readonly (readonly [string, number])[]): number =>
    sizes.reduce((total, [, size]) => total * size, 1);
  const size = mesh[axis]!;
  const stride = product(axes.slice(at + 1)); // Distance between neighboring ranks of a group.
  return Array.from({ length: product(axes) / size }, (_, part) => {
    const first = Math.floor(part / stride) * stride * size + (part % stride);
    return Array.from({ length: size }, (_, index) => first + index * stride);
  });
};
