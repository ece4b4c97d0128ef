import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JoinRequest } from "./handshake-messages.ts";
import { Membership } from "./membership.ts";

const requestOf = (ranks: readonly number[], worldSize: number): JoinRequest => ({
  build: "build",
  worldSize,
  ranks,
  addresses: ranks.map((rank) => ({ host: "h", port: 1000 + rank })),
  hostName: `host-${ranks[0]! % 2}`,
});

/** Generates partitions of the ranks of a world into processes, in a random order of arrival. */
const worlds = fc
  .record({ worldSize: fc.integer({ min: 1, max: 12 }), seed: fc.array(fc.nat(4), { minLength: 12, maxLength: 12 }) })
  .map(({ worldSize, seed }) => {
    const processes = new Map<number, number[]>();
    for (let rank = 0; rank < worldSize; rank++)
      processes.set(seed[rank]!, [...(processes.get(seed[rank]!) ?? []), rank]);
    return { worldSize, processes: [...processes.values()] };
  });

describe("membership", () => {
  test("gives the same roster for every order of arrival", () => {
    fc.assert(
      fc.property(worlds, fc.infiniteStream(fc.nat()), ({ worldSize, processes }, random) => {
        const world = { worldSize, build: "build" };
        const arrive = (order: readonly (readonly number[])[]) => {
          const membership = new Membership<string>(world);
          for (const ranks of order) {
            expect(membership.complete).toBe(false);
            expect(membership.admit(ranks.join(), requestOf(ranks, worldSize))).toBeUndefined();
          }
          expect(membership.complete).toBe(true);
          return membership;
        };
        const keys = new Map(processes.map((ranks) => [ranks, random.next().value as number]));
        const [one, other] = [arrive(processes), arrive(processes.toSorted((a, b) => keys.get(a)! - keys.get(b)!))];
        expect(other.roster()).toEqual(one.roster());
        const roster = one.roster();
        expect(roster.map(({ rank }) => rank)).toEqual(Array.from({ length: worldSize }, (_, rank) => rank));
        for (const ranks of processes) {
          expect(new Set(ranks.map((rank) => roster[rank]!.process)).size).toBe(1);
          for (const rank of ranks)
            expect(roster[rank]).toMatchObject({ port: 1000 + rank, hostName: `host-${ranks[0]! % 2}` });
        }
        expect(new Set(roster.map(({ process }) => process)).size).toBe(processes.length);
      }),
    );
  });

  test("admits all ranks of a process or none, after any refusals and departures", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ ranks: fc.array(fc.nat(6), { minLength: 1, maxLength: 3 }), leaves: fc.boolean() }), {
          maxLength: 20,
        }),
        (attempts) => {
          const membership = new Membership<object>({ worldSize: 6, build: "build" });
          const admitted = new Map<number, object>();
          for (const { ranks, leaves } of attempts) {
            const process = {};
            const fits =
              admitted.size < 6 &&
              new Set(ranks).size === ranks.length &&
              ranks.every((rank) => rank < 6 && !admitted.has(rank));
            expect(membership.admit(process, requestOf(ranks, 6)) === undefined).toBe(fits);
            if (fits) for (const rank of ranks) admitted.set(rank, process);
            if (leaves) {
              const left = membership.leave(process, "it left");
              expect(left).toEqual(
                [...admitted]
                  .filter(([, holder]) => holder === process)
                  .map(([rank]) => rank)
                  .sort((a, b) => a - b),
              );
              for (const rank of left) admitted.delete(rank);
            }
            expect(membership.missing).toEqual([0, 1, 2, 3, 4, 5].filter((rank) => !admitted.has(rank)));
            expect(membership.complete).toBe(admitted.size === 6);
          }
        },
      ),
    );
  });
});
