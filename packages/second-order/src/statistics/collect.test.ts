import { expect, test } from "vitest";
import { bucketsInOrder } from "./collect.ts";

const sides = [30, 10, 50, 5, 5].map((elements, i) => ({ name: `${i}`, elements }));

test.each([
  [0, [["0"], ["1"], ["2"], ["3"], ["4"]]],
  [4 * 40, [["0", "1"], ["2"], ["3", "4"]]],
  [
    4 * 60,
    [
      ["0", "1", "2"],
      ["3", "4"],
    ],
  ],
  [2 ** 30, [["0", "1", "2", "3", "4"]]],
])("a bucket is sent with the side that fills it to %d bytes; the last bucket with the last side", (bytes, buckets) => {
  expect(bucketsInOrder(sides, bytes)).toEqual(buckets);
});

test("no sides give no buckets", () => expect(bucketsInOrder([], 4)).toEqual([]));
