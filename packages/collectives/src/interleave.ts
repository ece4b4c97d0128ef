import { addLoads } from "./cost.ts";
import { embed } from "./embed.ts";
import {
  type Algorithm,
  chunkOf,
  type CostParameters,
  type CollectiveSchedule,
  type ScheduleCost,
  type Step,
  withoutEmpty,
} from "./schedule.ts";

/**
 * Returns the index of the first round of each schedule, if `count` schedules with `rounds` rounds each are
 * interleaved. Each schedule begins one round after the previous schedule, or later, so that at most `window` schedules
 * are in flight.
 */
export const beginnings = (count: number, rounds: number, window: number): number[] => {
  const begins: number[] = [];
  for (let j = 0; j < count; j++) {
    const before = begins[j - 1];
    const finished = begins[j - window];
    begins.push(Math.max(before === undefined ? 0 : before + 1, finished === undefined ? 0 : finished + rounds));
  }
  return begins;
};

/**
 * Interleaves the schedules of disjoint slices of one vector, so that one slice is sent while another slice is summed.
 * Round t of slice j runs in round t + j, or later if `window` limits the slices in flight. The scratch memory of each
 * schedule follows the scratch memory of the previous schedule.
 *
 * @param slices schedule of each slice, all with the same number of rounds, and the index of the slice's first element.
 * @param window maximum number of slices in flight. A rank that sends one message per round to a peer is then at most
 * `window` messages ahead of the peer. Between threads the limit is eight (`slotCount` of control-block/layout.ts):
 * with more slices, all ranks of a ring could wait for free slots at the same time.
 */
export const interleave = (
  slices: readonly { readonly schedule: CollectiveSchedule; readonly offset: number }[],
  window: number,
): CollectiveSchedule => {
  const rounds: Step[][] = [];
  let scratchElements = 0;
  const begins = beginnings(slices.length, slices[0]!.schedule.rounds.length, window);
  for (const [j, { schedule, offset }] of slices.entries()) {
    const shifted = embed(schedule.rounds, {
      input: { region: "input", offset },
      output: { region: "output", offset },
      scratch: { region: "scratch", offset: scratchElements },
    });
    for (const [t, steps] of shifted.entries()) (rounds[begins[j]! + t] ??= []).push(...steps);
    scratchElements += schedule.scratchElements;
  }
  return { algorithm: slices[0]!.schedule.algorithm, scratchElements, rounds: withoutEmpty(rounds) };
};

/**
 * Adds support for `ScheduleParameters.segments` to an algorithm on one vector (all-reduce, broadcast). The schedules
 * of s slices of the vector are interleaved.
 *
 * Cost: the same number of bytes, s times the number of messages, R + s − 1 rounds instead of R. The critical path is
 * the path of the first slice plus, for each later slice, the work of its busiest rank. The critical path is exact for
 * chains, and if all ranks do the same work.
 *
 * @param options.onePerPair whether a rank sends at most two messages per round to one peer, no matter how many slices
 * are in flight. If so, all slices may be in flight.
 */
export const segmented = (
  algorithm: Algorithm,
  { maxSegments = 8, onePerPair = false }: { readonly maxSegments?: number; readonly onePerPair?: boolean } = {},
): Algorithm => {
  const window = onePerPair ? Infinity : 8;
  return {
    ...algorithm,
    maxSegments,
    schedule: ({ segments = 1, ...parameters }) => {
      if (segments === 1) return algorithm.schedule(parameters);
      const slices = Array.from({ length: segments }, (_, j) => {
        const [offset, elementCount] = chunkOf(parameters.elementCount, segments, j);
        return { offset, schedule: algorithm.schedule({ ...parameters, elementCount }) };
      });
      return interleave(slices, window);
    },
    cost: ({ segments = 1, ...parameters }: CostParameters): ScheduleCost => {
      if (segments === 1) return algorithm.cost(parameters);
      const slice = algorithm.cost({ ...parameters, byteLength: parameters.byteLength / segments });
      return {
        rounds: slice.rounds === 0 ? 0 : beginnings(segments, slice.rounds, window).at(-1)! + slice.rounds,
        messages: segments * slice.messages,
        bytes: segments * slice.bytes,
        reducedBytes: segments * slice.reducedBytes,
        busiest: addLoads(slice.busiest, slice.busiest, segments - 1),
        path: addLoads(slice.path, slice.busiest, segments - 1),
      };
    },
  };
};
