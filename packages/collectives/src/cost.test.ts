import { expect, test } from "vitest";
import { costOfRounds } from "./cost.ts";

const hosts = [[0, 1], [2], [3]];

test("counts messages and bytes by class of links; the path sums the busiest rank of each round, in one direction", () => {
  const cost = costOfRounds({ worldSize: 4, hosts }, [
    { sends: (rank) => (rank === 1 ? [{ peer: 0, bytes: 7, summed: true }] : []) },
    // Both ranks of one host send: the host sends 30 bytes, and rank 2 receives two messages.
    { times: 3, sends: (rank) => (rank < 2 ? [{ peer: 2, bytes: 10 * (rank + 1), summed: true }] : []) },
    { sends: (rank) => (rank === 2 ? [{ peer: 3, bytes: 100 }] : []) },
    { sends: () => [] },
  ]);
  expect(cost).toEqual({
    rounds: 5,
    messages: 4, // Rank 1 sends one and three messages.
    bytes: 100, // Sent by rank 2.
    reducedBytes: 90, // Received by rank 2.
    busiest: { within: { messages: 1, bytes: 7 }, across: { messages: 6, bytes: 100 }, reducedBytes: 90 },
    path: { within: { messages: 1, bytes: 7 }, across: { messages: 7, bytes: 190 }, reducedBytes: 97 },
  });
});

test("without hosts, counts all messages as across", () => {
  const { path } = costOfRounds({ worldSize: 2 }, [{ sends: (rank) => [{ peer: 1 - rank, bytes: 5 }] }]);
  expect(path).toEqual({ within: { messages: 0, bytes: 0 }, across: { messages: 1, bytes: 5 }, reducedBytes: 0 });
});
