import { createHash } from "node:crypto";
import { RunError } from "@skein/cli/node";
import type { Backend, Communicator, DeviceArray, MeshCoordinates } from "@skein/tensor-core";
import { formatRanks } from "@skein/collectives";
import { type DeviceState, type Layout, splitLeaves } from "./train-state.ts";

/** A tensor whose bits differ between ranks. */
export interface Drift {
  readonly tensor: string;
  /**
   * Largest group of ranks with equal bits. If several groups have the same size: the group that contains the lowest
   * rank.
   */
  readonly majority: readonly number[];
  /** Ranks outside of the majority, whose bits differ. */
  readonly differing: readonly number[];
}

/**
 * Returns a digest of 16 hexadecimal digits. A short digest is sufficient, because the check detects faults, not
 * forgery.
 */
const digestOf = (...parts: readonly (string | Uint8Array)[]): string => {
  const hash = createHash("blake2b512");
  for (const part of parts) hash.update(part);
  return hash.digest("hex").slice(0, 16);
};

/** Reads arrays back from the device, and returns one digest per array. */
const digestsOf = async (backend: Backend, arrays: Iterable<DeviceArray>): Promise<string[]> => {
  const digests: string[] = [];
  for (const array of arrays) digests.push(digestOf((await backend.download(array)).bytes()));
  return digests;
};

/**
 * Returns a text key for a rank's coordinates along some axes. Ranks with different coordinates have different keys.
 */
const coordinateKey = (coordinates: MeshCoordinates, axes: readonly string[]): string =>
  axes.map((axis) => coordinates[axis]!).join();

/** Finds the tensors that differ between ranks. @param digests One digest per tensor, for each rank. */
export const findDrift = (tensors: readonly string[], digests: readonly (readonly string[])[]): Drift[] =>
  tensors.flatMap((tensor, i) => {
    const holders = new Map<string, number[]>();
    digests.forEach((own, rank) => holders.set(own[i]!, [...(holders.get(own[i]!) ?? []), rank]));
    if (holders.size === 1) return [];
    const most = Math.max(...[...holders.values()].map((ranks) => ranks.length));
    // among equally large groups, the first has the lowest rank
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

/** Possible causes of differences between ranks, for messages: first software, then hardware. */
export const causesOfDrift: string =
  "Your own code may have computed different values on each rank (Math.random, a clock, an environment variable, a file of one host): check it first. " +
  "Otherwise the memory or processor of a host may be faulty: test it";

/**
 * Returns a function that compares the replicated state of all ranks bit by bit: parameters, running statistics, and
 * the optimizer's state, which rank 0 saves for all ranks. After each step all ranks must have equal bits, except for
 * residuals, which belong to single ranks. Each rank reads its state back from the device and computes digests; only
 * digests are sent.
 *
 * @param layout Layout of the state. A shard is compared between the ranks that have the same shard. Slices have no
 * replicas and are not compared.
 * @param places Coordinates of the ranks along the mesh axes, in rank order.
 * @returns a function that all ranks must call after the same step. It throws a RunError that names tensors and ranks,
 * on all ranks.
 */
export const replicaCheck =
  (backend: Backend, world: Communicator, layout: Layout, places: readonly MeshCoordinates[]) =>
  async (state: DeviceState, step: number): Promise<void> => {
    if (world.worldSize === 1) return;
    const { shared, parts } = splitLeaves(state, layout);
    /**
     * Sets of tensors to compare. Ranks with the same key must have equal tensors. Shared tensors have the same key on
     * all ranks.
     */
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
