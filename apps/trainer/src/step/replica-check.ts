import { createHash } from "node:crypto";
import type { Backend, Communicator, DeviceArray, MeshCoordinates } from "@skein/tensor-core";
import { formatRanks } from "@skein/collectives";
import { RunError } from "../errors.ts";
import { type DeviceState, type Layout, splitLeaves } from "./train-state.ts";

/** A tensor whose bits differ between ranks. */
export interface Drift {
  readonly tensor: string;
  /** The largest group of ranks with the same bits. Of equally large groups, the group with the lowest rank. */
  readonly majority: readonly number[];
  /** All other ranks. */
  readonly differing: readonly number[];
}

/** A digest of 16 hexadecimal digits. A fast hash, because the check guards against faults, not against forgery. */
const digestOf = (...parts: readonly (string | Uint8Array)[]): string => {
  const hash = createHash("blake2b512");
  for (const part of parts) hash.update(part);
  return hash.digest("hex").slice(0, 16);
};

/** Compute a digest of each array, read back from the device. */
const digestsOf = async (backend: Backend, arrays: Iterable<DeviceArray>): Promise<string[]> => {
  const digests: string[] = [];
  for (const array of arrays) digests.push(digestOf((await backend.download(array)).bytes()));
  return digests;
};

/** A key of a rank's coordinates along some axes; ranks with different coordinates have different keys. */
const coordinateKey = (coordinates: MeshCoordinates, axes: readonly string[]): string =>
  axes.map((axis) => coordinates[axis]!).join();

/** Find the tensors that differ. @param digests per rank, one digest per tensor. */
export const findDrift = (tensors: readonly string[], digests: readonly (readonly string[])[]): Drift[] =>
  tensors.flatMap((tensor, i) => {
    const holders = new Map<string, number[]>();
    digests.forEach((own, rank) => holders.set(own[i]!, [...(holders.get(own[i]!) ?? []), rank]));
    if (holders.size === 1) return [];
    const most = Math.max(...[...holders.values()].map((ranks) => ranks.length));
    // the first of equals holds the lowest rank
    const largest = [...holders.values()].find((ranks) => ranks.length === most)!;
    return [
      {
        tensor,
        majority: largest,
        differing: digests.map((_, rank) => rank).filter((rank) => !largest.includes(rank)),
      },
    ];
  });

const describe = (drift: readonly Drift[]): string => {
  const listed = drift
    .slice(0, 3)
    .map(
      ({ tensor, majority, differing }) =>
        `${tensor} on ${formatRanks(differing)} differs from ${formatRanks(majority)}`,
    );
  return `${listed.join("; ")}${drift.length > listed.length ? `; ${drift.length - listed.length} more tensors differ` : ""}`;
};

/** Causes of differing ranks, for messages: first the program, then the hardware. */
export const causesOfDrift: string =
  "Your own code may have computed different values on each rank (Math.random, a clock, an environment variable, a file of one host): check it first. " +
  "Otherwise the memory or processor of a host may be faulty: test it";

/**
 * Build a check that compares between ranks, bit for bit, everything that rank 0 saves for all ranks: parameters,
 * running statistics, the optimizer's state. After each step all ranks must hold the same bits; residuals are private
 * to each rank. Each rank reads its state back from the device and computes digests; only digests are sent.
 *
 * @param layout of the state. A shard is compared between the ranks that have the same shard. A slice has no replica to
 * compare with. @param places coordinates of the ranks along the axes of the mesh, in rank order.
 * @returns a function that every rank calls after the same step. The function throws a RunError that names tensors and
 * ranks, on all ranks.
 */
export const replicaCheck =
  (backend: Backend, world: Communicator, layout: Layout, places: readonly MeshCoordinates[]) =>
  async (state: DeviceState, step: number): Promise<void> => {
    if (world.worldSize === 1) return;
    const { shared, parts } = splitLeaves(state, layout);
    /** Sets of tensors that ranks with the same key must share; for shared tensors, all ranks. */
    const sets = [
      { leaves: shared, keyOf: () => "" },
      ...parts.map(({ axes, leaves }) => ({ leaves, keyOf: (rank: number) => coordinateKey(places[rank]!, axes) })),
    ];
    const own: string[][] = [];
    for (const { leaves } of sets) own.push(await digestsOf(backend, leaves.values()));
    const whole = await world.exchangeTexts(own.map((digests) => digestOf(...digests)).join());
    const digests = whole.map((text) => text.split(","));
    const firstAt = (keyOf: (rank: number) => string, rank: number): number =>
      whole.findIndex((_, other) => keyOf(other) === keyOf(rank));
    const agrees = (rank: number): boolean =>
      sets.every(({ keyOf }, i) => digests[rank]![i] === digests[firstAt(keyOf, rank)]![i]);
    if (digests.every((_, rank) => agrees(rank))) return;
    const all = (await world.exchangeTexts(own.flat().join())).map((text) => text.split(","));
    const drift = sets.flatMap(({ leaves, keyOf }, i) => {
      const first = own.slice(0, i).reduce((sum, { length }) => sum + length, 0);
      return [...Map.groupBy(all.keys(), keyOf).values()].flatMap((ranks) =>
        findDrift(
          [...leaves.keys()],
          ranks.map((rank) => all[rank]!.slice(first, first + leaves.size)),
        ).map(({ tensor, majority, differing }) => ({
          tensor,
          majority: majority.map((at) => ranks[at]!),
          differing: differing.map((at) => ranks[at]!),
        })),
      );
    });
    throw new RunError(
      "replicas-differ",
      `step ${step}: ${describe(drift)}; replicas must hold the same bits after every step. ` +
        `${causesOfDrift}, then continue with skein-train resume from the last checkpoint, whose replicas were the same`,
    );
  };
