import { expect, test } from "vitest";
import { profileOfStarts } from "./measure-profile.ts";

test("a gradient that is not sent is ready with the previous one in the backward pass, and delays none", () => {
  const gradients = [
    ["alone-first", undefined],
    ["late", 5],
    ["alone-late", undefined],
    ["early", 2],
    ["alone-early", undefined],
  ] as const;
  const { tensors } = profileOfStarts(gradients.map(([path, readySeconds]) => ({ path, bytes: 4, readySeconds })));
  expect(tensors.map(({ path, backwardSeconds }) => [path, backwardSeconds])).toEqual([
    ["alone-first", 0],
    ["early", 2],
    ["alone-early", 0],
    ["late", 3],
    ["alone-late", 0],
  ]);
});
