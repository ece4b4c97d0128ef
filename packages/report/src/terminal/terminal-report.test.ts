import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyReport } from "../../test/any-report.ts";
import { sampleReport } from "../../test/sample-report.ts";
import { cut, displayWidth, wrapped } from "./display-width.ts";
import { terminalReport } from "./terminal-report.ts";
import { barLengths } from "./text-bar.ts";

// oxlint-disable-next-line no-control-regex
const withoutColours = (text: string): string => text.replaceAll(/\u001B\[\d+m/g, "");

test("no line is longer than the terminal, for any report and width", () => {
  fc.assert(
    fc.property(anyReport, fc.integer({ min: 20, max: 130 }), fc.boolean(), (report, columns, colour) => {
      const written = terminalReport(report, { columns, colour });
      for (const line of withoutColours(written).split("\n"))
        expect(displayWidth(line), line).toBeLessThanOrEqual(columns);
      // No text of a report can move the cursor.
      expect(withoutColours(written)).not.toMatch(/[^\P{Cc}\n]/u);
      if (!colour) expect(written).not.toContain("\u001B");
    }),
    { numRuns: 60 },
  );
});

test("colors change nothing else", () => {
  const report = sampleReport();
  expect(withoutColours(terminalReport(report, { columns: 80, colour: true }))).toBe(
    terminalReport(report, { columns: 80 }),
  );
});

test("80 columns show the step, ten operators in full by their time, collectives, the peak and the advice", () => {
  const written = terminalReport(sampleReport(), { columns: 80 });
  const rows = written.split("\n").filter((line) => /^\S.*\s{2,}(fwd|bwd|upd|comm)\s/.test(line));
  const milliseconds = rows.map((row) => Number(/(?:fwd|bwd|upd|comm)\s+([\d.]+)/.exec(row)![1]));
  expect(milliseconds).toHaveLength(10);
  expect(milliseconds).toEqual(milliseconds.toSorted((a, b) => b - a));
  expect(rows[0]).toMatch(/^matmul × 4 {2}block-0\/feed-forward {2}bwd +\d/);
  expect(written).not.toContain("…");
  for (const words of [
    "step      ",
    "predicted ",
    "bucket-2 ",
    "of intermediates at node ",
    "exchange.buckets: mg-wfbp",
    "How found: ",
  ])
    expect(written).toContain(words);
});

test("rejects a width that is too small or invalid", () => {
  for (const columns of [0, 19, 40.5, Number.NaN, Infinity])
    expect(() => terminalReport(sampleReport(), { columns })).toThrow(/^columns is .*, but .* at least 20; widen/);
});

describe("display width", () => {
  test("of East Asian letters and pictographs is two, of letters with marks one", () => {
    expect(["abc", "注意力", "e\u0301", "👍🏽", ""].map(displayWidth)).toEqual([3, 6, 1, 2, 0]);
  });

  test("stays within its limit when text is cut or wrapped, and wrapping loses no text", () => {
    expect([cut("block-0/feed-forward", 15, "middle"), cut("block-0", 5), cut("注意力", 4), cut("abc", 3)]).toEqual([
      "block-0…forward",
      "bloc…",
      "注…",
      "abc",
    ]);
    expect(wrapped("it takes 12.3 ms, which is 7 % more", 16)).toEqual(["it takes", "12.3 ms, which", "is 7 % more"]);
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 60 }), fc.integer({ min: 2, max: 30 }), (raw, width) => {
        const text = raw.replaceAll(/[\s\p{C}]+/gu, " ");
        const lines = wrapped(text, width);
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
        expect(lines.join("").replaceAll(" ", "")).toBe(text.replaceAll(" ", ""));
        expect(displayWidth(cut(text, width, "middle"))).toBeLessThanOrEqual(width);
      }),
    );
  });
});

test("a bar's lengths add up to its width and are off by less than one", () => {
  expect(barLengths([0, 0], 10)).toEqual([0, 0]);
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 7 }),
      fc.integer({ min: 1, max: 200 }),
      (amounts, width) => {
        const whole = amounts.reduce((sum, amount) => sum + amount, 0);
        fc.pre(whole > 1e-300);
        const lengths = barLengths(amounts, width);
        expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(width);
        for (const [index, length] of lengths.entries())
          expect(Math.abs(length - (amounts[index]! / whole) * width)).toBeLessThan(1);
      },
    ),
  );
});
