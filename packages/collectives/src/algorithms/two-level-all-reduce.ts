import { costOfRounds, type Message } from "../cost.ts";
import { embed, padded } from "../embed.ts";
import { segmented } from "../interleave.ts";
import {
  type Algorithm,
  chunkOf,
  type ElementRange,
  input,
  output,
  separateHosts,
  type Step,
  withoutEmpty,
} from "../schedule.ts";
import { ringAllReduce } from "./ring-all-reduce.ts";

/**
 * Returns the number of chunks of the vector: one chunk per local index that exists on every host, so the number of
 * ranks on the smallest host.
 */
const chunkCount = (hosts: readonly (readonly number[])[]): number => Math.min(...hosts.map((host) => host.length));

/**
 * Two-level all-reduce: a reduce-scatter within each host in rank order, then one ring all-reduce per chunk across
 * hosts, then an all-gather within each host. The ring for chunk i connects the ranks with local index i. All rings run
 * concurrently. On hosts larger than the smallest host, the extra ranks send operands and receive results, but own no
 * chunk.
 *
 * Cost: for m hosts of k ranks, P = mk: 2(m − 1) + 2 rounds; 2(P − 1) / P · S bytes per rank. 2(m − 1) / m · S / k
 * bytes per rank leave the host, so 2(m − 1) / m · S bytes per host. A ring over all ranks sends as many bytes, but
 * needs about k times as many rounds. Source: Jia et al., "Highly scalable deep learning training system with
 * mixed-precision: training ImageNet in four minutes", 2018; Cho et al., "BlueConnect", 2019.
 * @example
 * ```ts
 * const { rounds } = twoLevelAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8, hosts: [[0, 1], [2, 3]] });
 * console.log(rounds.length); // 4
 * ```
 */
export const twoLevelAllReduce: Algorithm = segmented({
  name: "two-level-all-reduce",
  kind: "all-reduce",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount, hosts = separateHosts(worldSize) }) => {
    const hostIndex = hosts.findIndex((host) => host.includes(rank));
    const host = hosts[hostIndex]!;
    const local = host.indexOf(rank);
    const owners = chunkCount(hosts);
    const chunk = (index: number, of = output): ElementRange => of(...chunkOf(elementCount, owners, index));
    const isOwner = local < owners;
    const others = host.filter((peer) => peer !== rank);
    const rounds: Step[][] = [];
    if (hosts.some(({ length }) => length > 1)) {
      const scatter: Step[] = host
        .slice(0, owners)
        .flatMap((peer, index): Step[] =>
          peer === rank ? [] : [{ action: "send", peer, source: chunk(index, input) }],
        );
      if (isOwner)
        for (const peer of others)
          scatter.push({ action: "receive", combine: "reduce", peer, target: chunk(local), own: chunk(local, input) });
      rounds.push(scatter);
    } else rounds.push([]);
    // A rank that is alone on its host has no local sum to compute.
    if (others.length === 0)
      rounds[0]!.push({ action: "copy", source: input(0, elementCount), target: output(0, elementCount) });

    const ringRounds = 2 * (hosts.length - 1);
    if (isOwner && hosts.length > 1) {
      const { offset, count } = chunk(local);
      const ring = ringAllReduce.schedule({ rank: hostIndex, worldSize: hosts.length, elementCount: count });
      const base = { region: "output", offset } as const;
      rounds.push(
        ...embed(
          ring.rounds,
          { input: base, output: base },
          hosts.map((members) => members[local]!),
        ),
      );
    } else rounds.push(...padded([], ringRounds));

    if (hosts.some(({ length }) => length > 1)) {
      const gather: Step[] = isOwner
        ? others.map((peer): Step => ({ action: "send", peer, source: chunk(local) }))
        : [];
      for (const [index, peer] of host.slice(0, owners).entries())
        if (peer !== rank) gather.push({ action: "receive", combine: "replace", peer, target: chunk(index) });
      rounds.push(gather);
    }
    return { algorithm: "two-level-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength, hosts = separateHosts(worldSize) } = parameters;
    const owners = chunkCount(hosts);
    const chunk = byteLength / owners;
    const hostOf = new Map(hosts.flatMap((host, index) => host.map((rank) => [rank, index] as const)));
    const inside = (sends: (local: number, host: readonly number[]) => readonly number[], summed: boolean) => ({
      sends: (rank: number): Message[] => {
        const host = hosts[hostOf.get(rank)!]!;
        return sends(host.indexOf(rank), host)
          .filter((peer) => peer !== rank)
          .map((peer) => ({ peer, bytes: chunk, summed }));
      },
    });
    const across = (summed: boolean) => ({
      times: hosts.length - 1,
      sends: (rank: number): Message[] => {
        const index = hostOf.get(rank)!;
        const local = hosts[index]!.indexOf(rank);
        if (local >= owners) return [];
        return [{ peer: hosts[(index + 1) % hosts.length]![local]!, bytes: chunk / hosts.length, summed }];
      },
    });
    return costOfRounds(parameters, [
      inside((_, host) => host.slice(0, owners), true),
      across(true),
      across(false),
      inside((local, host) => (local < owners ? host : []), false),
    ]);
  },
});
