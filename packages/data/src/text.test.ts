import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { gatherBatch } from "./records.ts";
import { splitText, textRecords } from "./text.ts";

describe("textRecords", () => {
  test("targets are the tokens shifted by one byte", () => {
    const { count, fields } = textRecords(new TextEncoder().encode("call me ishmael"), 4);
    expect(count).toBe(3);
    const batch = gatherBatch({ count, fields }, [2, 0]);
    const text = (name: string): string => new TextDecoder().decode(batch[name]!.bytes());
    expect(batch["inputs"]!.shape).toEqual([2, 4]);
    expect(text("inputs")).toBe("ishmcall");
    expect(text("labels")).toBe("shmaall ");
  });

  test("each byte except the first is a target at most once, and only a remainder is omitted", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 300 }), fc.integer({ min: 1, max: 40 }), (length, window) => {
        fc.pre(length > window);
        const records = textRecords(
          Uint8Array.from({ length }, (_, i) => i % 251),
          window,
        );
        const seen = gatherBatch(
          records,
          Array.from({ length: records.count }, (_, i) => i),
        )["labels"]!.toNumbers();
        expect(seen).toEqual(Array.from({ length: records.count * window }, (_, i) => (i + 1) % 251));
        expect(length - 1 - seen.length).toBeLessThan(window);
      }),
    );
  });

  test("rejects text shorter than a window", () => {
    expect(() => textRecords(new Uint8Array(8), 8)).toThrow("the text has 8 bytes, but one window needs 9");
    expect(() => splitText(new Uint8Array(8), 1)).toThrow("validation fraction of 1");
  });

  test("the two parts are the whole", () => {
    const { train, valid } = splitText(Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), 0.2);
    expect([[...train], [...valid]]).toEqual([
      [1, 2, 3, 4, 5, 6, 7, 8],
      [9, 10],
    ]);
  });
});
