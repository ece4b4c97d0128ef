import { expect, test } from "vitest";
import { maxPixels, smallPixels, withinPixels } from "./pixel-budget.ts";

test("images in progress never exceed the budget of pixels, and start in order", async () => {
  let pixels = 0;
  const order: number[] = [];
  const sizes = [maxPixels, maxPixels / 2, maxPixels / 2, maxPixels / 4, maxPixels, maxPixels / 4];
  await Promise.all(
    sizes.map((size, i) =>
      withinPixels(1, size, "rows", async () => {
        pixels += size;
        expect(pixels).toBeLessThanOrEqual(maxPixels);
        order.push(i);
        await new Promise((resolve) => setImmediate(resolve));
        pixels -= size;
      }),
    ),
  );
  expect(order).toEqual([0, 1, 2, 3, 4, 5]);
});

test("small images do not wait, a failed image releases its budget, and too large an image is rejected", async () => {
  const work = Promise.withResolvers<void>();
  const large = withinPixels(1, maxPixels, "rows", () => work.promise);
  expect(await withinPixels(1, smallPixels, "whole", async () => 7)).toBe(7);
  const next = withinPixels(1, maxPixels, "rows", async () => 8);
  work.reject(new Error("damaged"));
  await expect(large).rejects.toThrow("damaged");
  expect(await next).toBe(8);
  await expect(withinPixels(2, maxPixels, "whole", async () => 9)).rejects.toThrow(
    /^it has 134217728×2 = 268435456 pixels, but/,
  );
});
