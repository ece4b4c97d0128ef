import fc from "fast-check";
import { expect, test } from "vitest";
import { readRange } from "./read-range.ts";

test("returns a range of a file, or its existing part, for any size of partial reads", () =>
  fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 40 }),
      fc.tuple(fc.nat(50), fc.nat(50)),
      fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
      async (content, range, amounts) => {
        const [begin, end] = range.toSorted((one, other) => one - other) as [number, number];
        const found = await readRange(
          {
            read: async (target, offset, length, position) => {
              const part = content.subarray(position, position + Math.min(length, amounts.next().value as number));
              target.set(part, offset);
              return { bytesRead: part.length };
            },
          },
          begin,
          end,
        );
        expect(found).toEqual(content.slice(begin, end));
      },
    ),
  ));
