import { costOfRounds, type Message } from "../cost.ts";
import { embed, padded } from "../embed.ts";
import { segmented } from "../interleave.ts";
import {
  type Algorithm,
  chunkOf,
  type ElementRange,
  input,
  modulo,
  output,
  separateHosts,
  type Step,
  withoutEmpty,
} from "../schedule.ts";
import { ringAllReduce } from "./ring-all-reduce.ts";

/**
 * Two-level all-reduce with one master rank per host. Each host runs a ring reduce-scatter and gathers the chunks at
 * its master. The masters run a ring all-reduce of the complete vector. Then each master scatters the chunks on its
 * host, and the host runs a ring all-gather.
 *
 * Cost: for m hosts of k ranks: 4(k − 1) + 2(m − 1) rounds of one message, instead of 2(mk − 1) rounds in a ring over
 * all ranks. The master sends (3(k − 1) / k + 2(m − 1) / m) · S bytes. Suitable for small and medium vectors on many
 * hosts; `twoLevelAllReduce` sends fewer bytes. Source: Jia et al., "Highly scalable deep learning training system with
 * mixed-precision: training ImageNet in four minutes", 2018.
 * @example
 * ```ts
 * const { rounds } = mastersAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8, hosts: [[0, 1], [2, 3]] });
 * console.log(rounds.length); // 6
 * ```
 */
export const mastersAllReduce: Algorithm = segmented({
  name: "masters-all-reduce",
  kind: "all-reduce",
  rankOrder: false,
  schedule: ({ rank, worldSize, elementCount, hosts = separateHosts(worldSize) }) => {
    const hostIndex = hosts.findIndex((host) => host.includes(rank));
    const host = hosts[hostIndex]!;
    const [local, size] = [host.indexOf(rank), host.length];
    const steps = Math.max(...hosts.map(({ length }) => length)) - 1;
    // The chunk that the rank with local index `index` owns after the ring reduce-scatter.
    const held = (index: number): ElementRange => output(...chunkOf(elementCount, size, modulo(index + 1, size)));
    const whole = { region: "output", offset: 0 } as const;
    // A rank that is alone on its host has no ring within the host.
    const inside =
      size === 1 ? [] : embed(ringAllReduce.schedule({ rank: local, worldSize: size, elementCount }).rounds, {}, host);

    const collect: Step[][] = [];
    const deal: Step[][] = [];
    for (let index = 1; index < size; index++) {
      const own = local === index;
      collect.push(
        local === 0
          ? [{ action: "receive", combine: "replace", peer: host[index]!, target: held(index) }]
          : own
            ? [{ action: "send", peer: host[0]!, source: held(index) }]
            : [],
      );
      deal.push(
        local === 0
          ? [{ action: "send", peer: host[index]!, source: held(index) }]
          : own
            ? [{ action: "receive", combine: "replace", peer: host[0]!, target: held(index) }]
            : [],
      );
    }
    const amongMasters =
      local === 0
        ? embed(
            ringAllReduce.schedule({ rank: hostIndex, worldSize: hosts.length, elementCount }).rounds,
            { input: whole, output: whole },
            hosts.map((members) => members[0]!),
          )
        : [];
    const rounds = [
      ...padded(inside.slice(0, size - 1), steps),
      ...padded(collect, steps),
      ...padded(amongMasters, 2 * (hosts.length - 1)),
      ...padded(deal, steps),
      ...padded(inside.slice(size - 1), steps),
    ];
    if (size === 1)
      (rounds[0] ??= []).unshift({ action: "copy", source: input(0, elementCount), target: output(0, elementCount) });
    return { algorithm: "masters-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
  },
  cost: (parameters) => {
    const { worldSize, byteLength, hosts = separateHosts(worldSize) } = parameters;
    const placeOf = new Map(
      hosts.flatMap((host, index) => host.map((rank, local) => [rank, { host, index, local }] as const)),
    );
    const steps = Math.max(...hosts.map(({ length }) => length)) - 1;
    const turns = Array.from({ length: steps }, (_, step) => step + 1);
    const ringInside = (step: number, summed: boolean) => ({
      sends: (rank: number): Message[] => {
        const { host, local } = placeOf.get(rank)!;
        return step < host.length
          ? [{ peer: host[(local + 1) % host.length]!, bytes: byteLength / host.length, summed }]
          : [];
      },
    });
    const amongMasters = (summed: boolean) => ({
      times: hosts.length - 1,
      sends: (rank: number): Message[] => {
        const { index, local } = placeOf.get(rank)!;
        return local === 0
          ? [{ peer: hosts[(index + 1) % hosts.length]![0]!, bytes: byteLength / hosts.length, summed }]
          : [];
      },
    });
    return costOfRounds(parameters, [
      ...turns.map((step) => ringInside(step, true)),
      ...turns.map((step) => ({
        sends: (rank: number): Message[] => {
          const { host, local } = placeOf.get(rank)!;
          return local === step ? [{ peer: host[0]!, bytes: byteLength / host.length }] : [];
        },
      })),
      amongMasters(true),
      amongMasters(false),
      ...turns.map((step) => ({
        sends: (rank: number): Message[] => {
          const { host, local } = placeOf.get(rank)!;
          return local === 0 && step < host.length ? [{ peer: host[step]!, bytes: byteLength / host.length }] : [];
        },
      })),
      ...turns.map((step) => ringInside(step, false)),
    ]);
  },
});
