import { costOfRounds, type Message } from "../cost.ts";
import {
  type Algorithm,
  type ElementRange,
  input,
  modulo,
  output,
  scratch,
  type Step,
  withoutEmpty,
} from "../schedule.ts";
import { nearlySquare } from "../topology.ts";

type Hosts = readonly (readonly number[])[];

/** Returns the rows of a nearly square grid of ranks, used as hosts if the hosts are unknown. */
const gridRows = (worldSize: number): Hosts => {
  const [columns, rows] = nearlySquare(worldSize);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => row * columns + column),
  );
};

/**
 * Returns the ranks of the destination host `host` to which the relay with local index `local` on another host sends
 * chunks. If the other host has `size` ranks, its local rank i is the relay for all destinations whose local index is i
 * modulo `size`. On hosts of equal size each relay has one destination per host.
 */
const relayDestinations = (host: readonly number[], size: number, local: number): number[] => {
  const destinations: number[] = [];
  for (let index = local; index < host.length; index += size) destinations.push(host[index]!);
  return destinations;
};

const locate = (hosts: Hosts, rank: number): { index: number; host: readonly number[]; local: number } => {
  const index = hosts.findIndex((members) => members.includes(rank));
  const host = hosts[index]!;
  return { index, host, local: host.indexOf(rank) };
};

/**
 * Two-level all-to-all. First, ranks of a host send each chunk to the relay for its destination. Then each relay sends
 * all chunks of its host for one destination in one message. If hosts are unknown, the rows and columns of a nearly
 * square grid are used instead.
 *
 * Cost: for m hosts of k ranks: (k − 1) + (m − 1) rounds of one message instead of mk − 1; ((k − 1) / k + (m − 1) / m)
 * · S bytes per rank for an operand of S bytes. (m − 1) / m · S bytes per rank leave the host, as in a pairwise
 * exchange, but in messages k times as large. Each chunk is copied three times; scratch memory of 4S bytes. Source:
 * Hwang et al., "Tutel: adaptive mixture-of-experts at scale", 2023 (two-dimensional hierarchical all-to-all).
 * @example
 * ```ts
 * const { rounds } = twoLevelAllToAll.schedule({ rank: 0, worldSize: 4, elementCount: 8, hosts: [[0, 1], [2, 3]] });
 * console.log(rounds.length); // 5
 * ```
 */
export const twoLevelAllToAll: Algorithm = {
  name: "two-level-all-to-all",
  kind: "all-to-all",
  rankOrder: true,
  schedule: ({ rank, worldSize, elementCount, hosts = gridRows(worldSize) }) => {
    const { index, host, local } = locate(hosts, rank);
    const blocks = (of: (offset: number, count: number) => ElementRange, first: number, count = 1): ElementRange =>
      of(first * elementCount, count * elementCount);
    const size = host.length;
    const relayed = hosts.flatMap((members) => relayDestinations(members, size, local));
    const positionOf = new Map(relayed.map((destination, position) => [destination, position]));

    // Scratch memory: chunks for each relay; then the chunks that this rank relays, sorted by origin; then the relayed
    // chunks sorted by destination.
    const byRelay = host.map((_, relay) => hosts.flatMap((members) => relayDestinations(members, size, relay)));
    const byRelayAt = byRelay.map((_, relay) => byRelay.slice(0, relay).reduce((sum, { length }) => sum + length, 0));
    const byOriginAt = worldSize;
    const byDestinationAt = byOriginAt + size * relayed.length;
    const receivedAt = byDestinationAt + size * relayed.length;
    const pack = byRelay.flatMap((destinations, relay) =>
      destinations.map((destination, position): Step => {
        const first = relay === local ? byOriginAt + local * relayed.length : byRelayAt[relay]!;
        return { action: "copy", source: blocks(input, destination), target: blocks(scratch, first + position) };
      }),
    );
    const largest = Math.max(...hosts.map(({ length }) => length));
    const inside = Array.from({ length: largest - 1 }, (_, step): Step[] => {
      if (step + 1 >= size) return [];
      const [to, from] = [(local + step + 1) % size, modulo(local - step - 1, size)];
      return [
        { action: "send", peer: host[to]!, source: blocks(scratch, byRelayAt[to]!, byRelay[to]!.length) },
        {
          action: "receive",
          combine: "replace",
          peer: host[from]!,
          target: blocks(scratch, byOriginAt + from * relayed.length, relayed.length),
        },
      ];
    });
    const between = relayed.flatMap((destination, position) =>
      host.map((source, origin): Step => {
        const block = blocks(scratch, byOriginAt + origin * relayed.length + position);
        // Chunks for ranks on this host are not relayed, except the chunk of this rank for itself.
        const target =
          destination === rank ? blocks(output, source) : blocks(scratch, byDestinationAt + position * size + origin);
        return { action: "copy", source: block, target };
      }),
    );
    const unpack: Step[] = [];
    let receivedEnd = receivedAt;
    const across = Array.from({ length: hosts.length - 1 }, (_, step): Step[] => {
      const to = hosts[(index + step + 1) % hosts.length]!;
      const origin = hosts[modulo(index - step - 1, hosts.length)]!;
      const received = receivedEnd;
      receivedEnd += origin.length;
      for (const [position, source] of origin.entries())
        unpack.push({ action: "copy", source: blocks(scratch, received + position), target: blocks(output, source) });
      return [
        ...relayDestinations(to, size, local).map((peer): Step => {
          const first = byDestinationAt + positionOf.get(peer)! * size;
          return { action: "send", peer, source: blocks(scratch, first, size) };
        }),
        {
          action: "receive",
          combine: "replace",
          peer: origin[local % origin.length]!,
          target: blocks(scratch, received, origin.length),
        },
      ];
    });
    const rounds = withoutEmpty([pack, ...inside, between, ...across, unpack]);
    return { algorithm: "two-level-all-to-all", scratchElements: receivedEnd * elementCount, rounds };
  },
  cost: (parameters) => {
    const { worldSize, byteLength } = parameters;
    const hosts = parameters.hosts ?? gridRows(worldSize);
    const chunk = byteLength / worldSize;
    const ranks = Array.from({ length: worldSize }, (_, rank) => locate(hosts, rank));
    const relayed = (size: number, local: number): number =>
      hosts.reduce((count, members) => count + relayDestinations(members, size, local).length, 0);
    const relayedAt = hosts.map((host) => host.map((_, local) => relayed(host.length, local)));
    const largest = Math.max(...hosts.map(({ length }) => length));
    const inside = Array.from({ length: largest - 1 }, (_, step) => ({
      sends: (rank: number): Message[] => {
        const { index, host, local } = ranks[rank]!;
        if (step + 1 >= host.length) return [];
        const to = (local + step + 1) % host.length;
        return [{ peer: host[to]!, bytes: relayedAt[index]![to]! * chunk }];
      },
    }));
    const across = Array.from({ length: hosts.length - 1 }, (_, step) => ({
      sends: (rank: number): Message[] => {
        const { index, host, local } = ranks[rank]!;
        const to = hosts[(index + step + 1) % hosts.length]!;
        return relayDestinations(to, host.length, local).map((peer) => ({ peer, bytes: host.length * chunk }));
      },
    }));
    return costOfRounds(parameters, [...inside, ...across]);
  },
};
