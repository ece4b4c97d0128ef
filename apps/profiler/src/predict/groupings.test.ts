import fc from "fast-check";
import { expect, test } from "vitest";
import { scaleToGroup, plannedGroupings, sentGroups, sizedGroupings } from "./groupings.ts";
import { halvedGroupings } from "../plan/halved-groupings.ts";
import { rankList } from "../plan/rank-list.ts";

const gradients = fc.array(fc.integer({ min: 1, max: 1e8 }), { minLength: 1, maxLength: 12 });
const link = { startupSeconds: 1e-4, secondsPerByte: 1e-9 };

test("every grouping contains each bucket once, and groupings of one kind are distinct", () => {
  fc.assert(
    fc.property(gradients, (bytes) => {
      const profile = {
        tensors: bytes.map((own, i) => ({ path: String(i), bytes: own, backwardSeconds: 1e-3, forwardSeconds: 1e-3 })),
      };
      const sized = sizedGroupings(bytes);
      const { priced, groupings } = halvedGroupings(bytes, {
        profile,
        allReduce: link,
        toSentGroups: (groups) => groups,
      });
      expect(groupings.length).toBeLessThanOrEqual(priced);
      for (const kind of [sized, groupings])
        expect(new Set(kind.map(({ groups }) => JSON.stringify(groups))).size).toBe(kind.length);
      for (const { groups } of [...sized, ...groupings, ...plannedGroupings(profile, link, { slowdown: [1, 2] })])
        expect(groups.flat().sort((a, b) => a - b)).toEqual([...bytes.keys()]);
    }),
    { numRuns: 40 },
  );
});

test("gradients averaged over other ranks are sent separately, and gradients on a single rank are not sent", () => {
  const axes = ["data", "replicas", "data", "alone", "replicas", "alone"];
  const toSentGroups = sentGroups(
    axes.map((axis) => ({ axis })),
    [{ bucket: 4 }, { bucket: 2 }, { bucket: 1 }, { bucket: 0 }],
  );
  expect(toSentGroups([[0, 1, 2, 3], [5], [4]])).toEqual([[0, 2], [1], [4]]);
});

test("an all-reduce over two ranks costs as much as a smaller one over four", () => {
  const profile = { tensors: ["0", "1"].map((path) => ({ path, bytes: 300, backwardSeconds: 1 })) };
  const { tensors } = scaleToGroup({ worldSize: 4 }, profile, (bucket) => ({ worldSize: bucket === "0" ? 2 : 4 }));
  expect(tensors.map(({ bytes }) => bytes)).toEqual([expect.closeTo(200, 9), 300]); // bytes sent: factor 2 (P − 1) / P
});

test("buckets of a size are filled as far as possible", () => {
  fc.assert(
    fc.property(gradients, (bytes) => {
      const total = (group: readonly number[]): number => group.reduce((sum, bucket) => sum + bytes[bucket]!, 0);
      for (const { buckets, groups } of sizedGroupings(bytes).slice(1))
        for (const [i, group] of groups.entries()) {
          const size = buckets["bytes"] as number;
          if (group.length > 1) expect(total(group)).toBeLessThanOrEqual(size);
          const next = groups[i + 1]?.[0];
          if (next !== undefined) expect(total(group) + bytes[next]!).toBeGreaterThan(size);
        }
    }),
    { numRuns: 40 },
  );
});

test.each([
  ["8", [8]],
  ["4, 2,4", [2, 4]],
  ["2..64", [2, 4, 8, 16, 32, 64]],
  ["3..20", [3, 6, 12]],
])("--ranks %s", (text, counts) => {
  expect(rankList(text)).toEqual(counts);
});

test.each(["", "0", "two", "2..", "8..4", "2...8", "2,,4", "1e9", "-2", "99999999"])(
  "--ranks %j is refused",
  (text) => {
    expect(() => rankList(text)).toThrow(/^--ranks .*: must be a whole number from 1/);
  },
);
