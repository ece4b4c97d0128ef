import { expect, test } from "vitest";
import { groupsOfLevels } from "./all-to-all-times.ts";

test("ranks of a host, and corresponding ranks of all hosts", () => {
  expect(
    groupsOfLevels([
      [0, 2],
      [1, 3],
      [4, 5],
    ]),
  ).toEqual([
    { level: "all", groups: [[0, 1, 2, 3, 4, 5]] },
    {
      level: "within",
      groups: [
        [0, 2],
        [1, 3],
        [4, 5],
      ],
    },
    {
      level: "across",
      groups: [
        [0, 1, 4],
        [2, 3, 5],
      ],
    },
  ]);
});

test.each([[[[0, 1, 2]]], [[[0], [1]]], [[[0, 1], [2]]]])("%j has one level", (hosts) => {
  expect(groupsOfLevels(hosts).map(({ level }) => level)).toEqual(["all"]);
});
