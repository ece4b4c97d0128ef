import type fc from "fast-check";
import { bucketOf, type Bucket } from "../../src/index.ts";
import type { Row } from "../rows/row.ts";
import { collectiveBytes, collectiveNodes, fixedBytes } from "../collective-bytes.ts";
import { stepperOf } from "../stepper.ts";
import {
  always,
  buckets,
  cycleOf,
  drawn,
  expectEqual,
  expectSameBits,
  holds,
  type Law,
  smoothGradient,
  worldsOf,
} from "./law.ts";

// A multiple of 256 for every tested number of ranks, so that no padding is needed.
const even: Bucket = bucketOf([{ path: "w", shape: [60, 256] }]);
const large: Bucket = bucketOf([
  { path: "a", shape: [100, 123] },
  { path: "b", shape: [123] },
  { path: "c", shape: [3, 3, 16, 32] },
]);

const expectBytes = (actual: number, expected: number, what: string): void => {
  if (!(Math.abs(actual - expected) <= 1e-9 * Math.max(1, expected)))
    throw new Error(`${what}: ${actual} bytes, not ${expected}`);
};

const declaredBy = ({ cycle, aggregator }: Row, step: number, bucket: Bucket, numRanks: number): number =>
  (cycle?.[step] ?? aggregator).bytesSent(bucket, numRanks);

const bytes: Law = {
  name: "sends exactly the bytes that it declares and that the formula gives",
  appliesTo: always,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    for (const [name, bucket] of Object.entries({ ...buckets, even, large })) {
      for (const numRanks of [1, 2, 3, 4, 5]) {
        const where = `${name} on ${numRanks} ranks`;
        worlds(bucket, numRanks).forEach(({ graph }, step) => {
          const declared = declaredBy(row, step, bucket, numRanks);
          if (row.bytesAreMost !== true)
            expectBytes(collectiveBytes(graph), declared, `the graph of ${where} sends, bytesSent says`);
          if (step === 0) expectBytes(declared, row.bytes(bucket, numRanks), `bytesSent of ${where}, the formula says`);
        });
      }
    }
  },
};

const maxBytes: Law = {
  name: "never sends more than the declared maximum, which is at most the capacity",
  appliesTo: (row) => row.bytesAreMost === true,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    // Sends the most, because every entry is selected.
    const large = (length: number): fc.Arbitrary<number[]> =>
      smoothGradient(length).map((own) => own.map((value) => 1e3 * value));
    for (const gradient of [undefined, large]) {
      holds(drawn(gradient && { gradient }), ({ bucket, numRanks, gradients, seed }) => {
        const [world] = worlds(bucket, numRanks);
        const declared = declaredBy(row, 0, bucket, numRanks);
        const sent = fixedBytes(world!.graph) + world!.raggedBytes(gradients, seed);
        if (sent > declared * (1 + 1e-9)) throw new Error(`sent ${sent} bytes, but declared were ${declared} at most`);
        const room = collectiveBytes(world!.graph);
        if (declared > room * (1 + 1e-9))
          throw new Error(`declared ${declared} bytes, but there is room for ${room} only`);
      });
    }
  },
};

const stateStays: Law = {
  name: "a step leaves a state of the same structure",
  appliesTo: always,
  check: (row) => {
    const worlds = worldsOf(row, cycleOf(row));
    for (const bucket of [...Object.values(buckets), large]) {
      for (const numRanks of [1, 3]) {
        const cycle = worlds(bucket, numRanks);
        for (const { before, after } of cycle) {
          const [was, is] = [JSON.stringify(cycle[0]!.before), JSON.stringify(after)];
          if (JSON.stringify(before) !== was)
            throw new Error(`the states of one round differ: ${JSON.stringify(before)} and ${was}`);
          if (is !== was) throw new Error(`before a step the state is ${was}, after it ${is}`);
        }
      }
    }
  },
};

const halves: Law = {
  name: "begin and finish equal aggregate, at the same cost",
  appliesTo: ({ aggregator }) => aggregator.halves !== undefined,
  check: (row) => {
    const [whole, split] = [worldsOf(row, cycleOf(row)), worldsOf(row, cycleOf(row), true)];
    holds(drawn(), ({ bucket, numRanks, gradients, seed }) => {
      const [a, b] = [whole, split].map((worlds) => {
        const [world] = worlds(bucket, numRanks);
        const first = world!.step(gradients, world!.init(), seed);
        return world!.step(gradients.toReversed(), first.state, seed, 1);
      });
      a!.mean.forEach((mean, rank) => expectSameBits(b!.mean[rank]!, mean, `mean of rank ${rank}`));
      a!.sent.forEach((sent, rank) => expectSameBits(b!.sent[rank]!, sent, `sent by rank ${rank}`));
      a!.state.forEach((leaves, rank) =>
        leaves.forEach(({ data }, leaf) =>
          expectEqual(b!.state[rank]![leaf]!.data, data, `state ${leaf} of rank ${rank}`),
        ),
      );
    });
    for (const numRanks of [1, 2, 3, 4, 5]) {
      const declared = row.aggregator.bytesSent(even, numRanks);
      expectBytes(
        collectiveBytes(split(even, numRanks)[0]!.graph),
        declared,
        `halves on ${numRanks} ranks, bytesSent says`,
      );
    }
  },
};

const priorities: Law = {
  name: "passes the bucket's priority to every collective, also in halves",
  appliesTo: always,
  check: (row) => {
    for (const inHalves of row.aggregator.halves === undefined ? [false] : [false, true]) {
      for (const aggregator of cycleOf(row)) {
        const options = { axes: row.axes?.(4), keyed: row.randomised, inHalves, collective: { priority: 2 } };
        for (const bucket of [buckets.mixed, even]) {
          const deaf = collectiveNodes(stepperOf(aggregator, bucket, 4, options).graph).find(
            ({ params }) => params["priority"] !== 2,
          );
          if (deaf !== undefined)
            throw new Error(`${deaf.op} along "${deaf.params["axis"]}" has priority ${deaf.params["priority"]}, not 2`);
        }
      }
    }
  },
};

export const structureLaws: readonly Law[] = [bytes, maxBytes, priorities, stateStays, halves];
