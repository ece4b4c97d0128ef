import { describe, expect, test } from "vitest";
import { findMpis } from "./launch.ts";

for (const { name, missing, launch } of await findMpis()) {
  describe.skipIf(missing !== undefined)(`${name}`, () => {
    for (const { worldSizes, tags } of [
      { worldSizes: [4], tags: [] },
      { worldSizes: [2], tags: ["full"] },
    ])
      describe.each(worldSizes)("%i ranks", { tags }, (ranks) => {
        test("all algorithms and MPI's own, also in small parts, on concurrent lanes and with lent memory, give the bits of a world in one process", async () => {
          const jobs = [
            "algorithms",
            "small parts",
            "exchange",
            "native",
            "native in small parts",
            "lanes",
            "lent memory",
          ];
          const { code, results, output } = await launch(ranks, "./rank.ts", ...jobs);
          expect(code, output).toBe(0);
          expect(results).toHaveLength(ranks * jobs.length);
          for (const { rank, job, wrong, tested } of results) {
            expect(wrong, `${String(job)}, rank ${String(rank)}`).toEqual([]);
            expect(tested).toBeGreaterThan(0);
          }
        });

        test("a world with companion threads supports priorities, groups and ragged rows", async () => {
          const { code, results, output } = await launch(ranks, "./world-rank.ts");
          expect(code, output).toBe(0);
          expect(results).toHaveLength(ranks);
          const all = Array.from({ length: ranks }, (_, rank) => rank);
          results.forEach(({ rank, words, sums, gathered, receivedRows, arrived, hosts }) => {
            expect(words).toBe("said by rank 0, ä");
            expect(sums).toEqual([0, 1, 2, 3].map((priority) => (ranks * (ranks - 1)) / 2 + ranks * priority));
            const first = 2 * Math.floor((rank as number) / 2);
            expect(gathered).toEqual([first, first + 1]);
            expect(receivedRows).toEqual(all.map((from) => from + 1));
            expect(arrived).toEqual(
              all.flatMap((from) => Array.from({ length: 8 }, (_, row) => (row <= from ? from + 1 : 0))),
            );
            expect(hosts).toEqual([all]);
          });
        });
      });

    test.each([
      [2, "caller", 1],
      [3, "both", 3],
    ])(
      "%i ranks, requests executed by caller or companion (%s), program %i: sums have the bits of rank order",
      async (ranks, by, seed) => {
        const { code, results, output } = await launch(ranks, "./world-rank.ts", "mixed", by, String(seed));
        expect(code, output).toBe(0);
        expect(results).toHaveLength(ranks);
        for (const { wrong, tested, isCaller } of results) {
          expect(wrong).toEqual([]);
          expect(tested).toBeGreaterThan(1000);
          expect(isCaller).toBe(true);
        }
      },
    );

    describe("failures", () => {
      test("reports ranks that disagree, and the lane stays broken", async () => {
        const { results, output } = await launch(2, "./rank.ts", "disagree");
        const { errors } = (results[1] ?? {}) as { errors: { code: string; message: string; sameLater: boolean }[] };
        expect(errors, output).toHaveLength(6);
        for (const { code, sameLater } of errors) expect([code, sameLater]).toEqual(["ranks-disagree", true]);
        const messages = errors.map(({ message }) => message.replace(/^.*?: /, "").replace(/; all ranks .*$/, ""));
        expect(messages.slice(0, 2)).toEqual([
          "rank 0 sent 40 bytes, 36 were expected",
          "rank 0 sent 36 bytes, 40 were expected",
        ]);
        expect(messages[2]).toMatch(/^rank 0 sent 40 bytes for another collective/);
        expect(messages[3]).toBe("rank 0 sent 64 bytes, 64 were expected in a part of a message of 100");
        expect(messages[4]).toBe("rank 0 sent 64 bytes, 64 were expected in a part of a message of 64");
        expect(messages[5]).toBe("rank 0 sent 200000 bytes, 100000 were expected");
        const sizes = [40, 36];
        results.forEach(({ native, exchanged }, rank) => {
          expect(exchanged).toMatch(
            new RegExp(
              `^ranks-disagree: .*rank ${1 - rank} sent ${sizes[1 - rank]} bytes, ${sizes[rank]} were expected`,
            ),
          );
          expect(native).toMatch(
            new RegExp(
              `^ranks-disagree: rank ${rank} in all-reduce #1: not all ranks have started all-reduce of ${sizes[rank]} bytes`,
            ),
          );
        });
      });

      test("if a rank does not join, a timeout names it, and MPI can only be aborted, not closed", async () => {
        const { code, results, output } = await launch(2, "./rank.ts", "late");
        const { errors } = results[0] as { errors: string[] };
        expect(errors, output).toHaveLength(4);
        expect(errors[0]).toMatch(/^collective-timeout: rank 0: rank 1 did not join collective 7 within 300 ms/);
        expect(errors[1]).toMatch(/^collective-timeout: rank 0: all-reduce #3 of MPI itself did not end within 300 ms/);
        expect(errors[2]).toMatch(/^collective-timeout: rank 0: rank 1 did not join collective 9 within 300 ms/);
        expect(errors[3]).toMatch(/^mpi-call: closing MPI failed in MPI: \d+ calls or messages are still in flight/);
        expect(code).toBe(5);
      });

      test.each(["caller", "companion"])("if a rank of a world does not join, the %s reports a timeout", async (by) => {
        const { code, results, output } = await launch(2, "./world-rank.ts", "late", by);
        expect(results[0]?.["code"], output).toBe("collective-timeout");
        expect(results[0]?.["message"]).toMatch(/all-reduce #1/);
        expect(code).toBe(6);
      });

      test.each(["exit", "killed"])("if a rank ends by %s, the job ends", async (job) => {
        const { code, output } = await launch(3, "./rank.ts", job);
        expect(code, output).not.toBe(0); // Launchers differ in which rank's code they return.
      });

      test("a world continues after a thread ends that awaits a message", async () => {
        const { code, results, output } = await launch(2, "./rank.ts", "ended while awaiting");
        expect(code, output).toBe(0);
        results.forEach(({ seen, after }, rank) =>
          expect({ seen, after }).toEqual({ seen: { rank, size: 2 }, after: "goes on" }),
        );
      });

      test("MPI is closed in a process whose thread ends while MPI uses its memory", async () => {
        const { results, output } = await launch(2, "./rank.ts", "ended while sending");
        expect(results, output).toHaveLength(2);
        results.forEach(({ seen, after }, rank) =>
          expect({ seen, after }).toEqual({ seen: { rank, size: 2 }, after: "mpi-closed" }),
        );
      });
    });

    describe("an idle world", () => {
      test("uses little processor time", async () => {
        const { results, output } = await launch(2, "./rank.ts", "idle");
        expect(results, output).toHaveLength(2);
        // A thread that polls continuously would have a share of 1.
        for (const { busyShare } of results) expect(busyShare).toBeLessThan(0.5);
      });
    });
  });
}
