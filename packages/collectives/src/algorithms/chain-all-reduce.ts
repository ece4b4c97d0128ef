import { costOfRounds, type Message, type MessageRound } from "../cost.ts";
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
import { runsOf } from "../topology.ts";

/**
 * Returns the position of a rank in the chain of runs. A run consists of consecutive ranks on the same host. `run`: the
 * rank's run. `index`: index of this run. `last`: index of the last run. `local`: the rank's index within its run.
 * `owners`: number of ranks per run that own a chunk, which is the length of the shortest run.
 */
const positionIn = (runs: readonly (readonly number[])[], rank: number) => {
  const index = runs.findIndex((run) => run.includes(rank));
  const run = runs[index]!;
  return {
    owners: Math.min(...runs.map(({ length }) => length)),
    last: runs.length - 1,
    index,
    run,
    local: run.indexOf(rank),
  };
};

/**
 * Two-level all-reduce in rank order. Partial sums pass along a chain of hosts, and each host adds the operands of its
 * ranks in order, `(((x₀ + x₁) + x₂) + x₃) + …`. The last host has the result and returns it along the chain. Each
 * local index that exists on every host has a separate chain for one chunk. Designed for segments: earlier segments
 * return along the chain while later segments still pass up. A host whose ranks are not consecutive counts as several
 * hosts (`runsOf`), to preserve rank order.
 *
 * Cost: for m hosts of k ranks and s segments: 2m + s − 1 rounds (two fewer for k = 1). Each host sends 2S bytes,
 * compared with 2(m − 1) / m · S in a two-level ring, and (m − 1) · 2k / m · S in the direct algorithm, the only other
 * algorithm in rank order. Source: the pipelined chain of van de Geijn and Watts, 1997, as a prefix sum; two levels as
 * in `twoLevelAllReduce`.
 * @example
 * ```ts
 * const { rounds } = chainAllReduce.schedule({ rank: 0, worldSize: 4, elementCount: 8 });
 * console.log(rounds.length); // 8
 * ```
 */
export const chainAllReduce: Algorithm = segmented(
  {
    name: "chain-all-reduce",
    kind: "all-reduce",
    rankOrder: true,
    schedule: ({ rank, worldSize, elementCount, hosts = separateHosts(worldSize) }) => {
      const runs = runsOf(hosts, worldSize);
      const { owners, last, index, run, local } = positionIn(runs, rank);
      const chunk = (of: (offset: number, count: number) => ElementRange, i: number): ElementRange =>
        of(...chunkOf(elementCount, owners, i));
      const others = run.filter((peer) => peer !== rank);
      const [below, above] = [runs[index - 1]?.[local], runs[index + 1]?.[local]];
      const isOwner = local < owners;
      const rounds: Step[][] = Array.from({ length: 2 * last + 2 }, () => []);
      // On the host that completes the sum, the result may be written directly to the operands' memory.
      const returned = index === last;

      // Up: in round `index`, this host adds its operands to the sum of all previous hosts of the chain.
      const operand = chunk(input, local);
      const sum = chunk(output, local);
      const up = rounds[index]!;
      const operandsFrom = returned ? output : input; // Results are returned to the memory of the sent operands.
      if (returned) up.push({ action: "copy", source: input(0, elementCount), target: output(0, elementCount) });
      for (const [i, owner] of run.slice(0, owners).entries())
        if (owner !== rank) up.push({ action: "send", peer: owner, source: chunk(operandsFrom, i) });
      if (isOwner) {
        const own = returned ? sum : operand;
        const parts = [
          ...(below === undefined ? [] : [{ peer: below, returned: false }]),
          ...others.map((peer) => ({ peer, returned })),
        ];
        for (const part of parts) up.push({ action: "receive", combine: "reduce", target: sum, own, ...part });
        if (parts.length === 0 && !returned) up.push({ action: "copy", source: operand, target: sum });
        if (above !== undefined) rounds[index + 1]!.push({ action: "send", peer: above, source: sum });
      }

      // Back: the last host has the result after round `last`. Each host sends the result to the previous host of the
      // chain and to the other ranks of the same host.
      const known = 2 * last - index;
      if (isOwner) {
        if (above !== undefined)
          rounds[known]!.push({ action: "receive", combine: "replace", peer: above, target: sum });
        if (below !== undefined) rounds[known + 1]!.push({ action: "send", peer: below, source: sum });
        for (const peer of others) rounds[known + 1]!.push({ action: "send", peer, source: sum, returned });
      }
      for (const [i, owner] of run.slice(0, owners).entries())
        if (owner !== rank)
          rounds[known + 1]!.push({
            action: "receive",
            combine: "replace",
            peer: owner,
            target: chunk(output, i),
            returned,
          });
      return { algorithm: "chain-all-reduce", scratchElements: 0, rounds: withoutEmpty(rounds) };
    },
    cost: (parameters) => {
      const { worldSize, byteLength, hosts = separateHosts(worldSize) } = parameters;
      const runs = runsOf(hosts, worldSize);
      const ranks = Array.from({ length: worldSize }, (_, rank) => positionIn(runs, rank));
      const rounds: MessageRound[] = Array.from({ length: 2 * runs.length }, (_, round) => ({
        sends: (rank): Message[] => {
          const { owners, last, index, run, local } = ranks[rank]!;
          const bytes = byteLength / owners;
          const others = run.filter((peer) => peer !== rank);
          const messages: Message[] = [];
          if (round === index)
            for (const peer of run.slice(0, owners)) if (peer !== rank) messages.push({ peer, bytes, summed: true });
          if (local >= owners) return messages;
          if (round === index + 1 && index < last)
            messages.push({ peer: runs[index + 1]![local]!, bytes, summed: true });
          if (round === 2 * last - index + 1) {
            if (index > 0) messages.push({ peer: runs[index - 1]![local]!, bytes });
            messages.push(...others.map((peer) => ({ peer, bytes })));
          }
          return messages;
        },
      }));
      return costOfRounds(parameters, rounds);
    },
  },
  { maxSegments: 64, onePerPair: true },
);
