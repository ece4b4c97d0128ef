import fc from "fast-check";
import { expect, test } from "vitest";
import { anyReport } from "../test/any-report.ts";
import { csvOf } from "./csv.ts";

/** Parses records by the grammar of RFC 4180. */
const read = (text: string): string[][] => {
  const records: string[][] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy;
  let record: string[] = [];
  while (field.lastIndex < text.length) {
    const [, quoted, plain, end] = field.exec(text)!;
    record.push(quoted?.replaceAll('""', '"') ?? plain!);
    if (end === "\r\n") {
      records.push(record);
      record = [];
    }
  }
  return records;
};

test("round-trips names, numbers with all digits, and unknown values", () => {
  fc.assert(
    fc.property(anyReport, (report) => {
      const [operators, collectives] = [read(csvOf(report).operators), read(csvOf(report).collectives)];
      const at = (table: string[][], row: number, column: string): string =>
        table[row + 1]![table[0]!.indexOf(column)]!;
      expect([operators.length, collectives.length]).toEqual([
        report.operators.length + report.outside.length + 1,
        report.collectives.length + 1,
      ]);
      for (const [row, { share }] of report.outside.entries()) {
        const line = report.operators.length + row;
        expect([
          at(operators, line, "phase"),
          Number(at(operators, line, "share")),
          at(operators, line, "flops"),
        ]).toEqual(["outside", share, ""]);
      }
      for (const table of [operators, collectives])
        for (const record of table) expect(record.length).toBe(table[0]!.length);
      for (const [row, { operator, scope, seconds, predictedSeconds }] of report.operators.entries()) {
        expect([at(operators, row, "operator"), at(operators, row, "scope")]).toEqual([operator, scope]);
        expect(Number(at(operators, row, "seconds_median"))).toBe(seconds.median);
        expect(at(operators, row, "predicted_seconds")).toBe(
          predictedSeconds === undefined ? "" : String(predictedSeconds),
        );
      }
      for (const [row, { name, exposedSeconds, bytes }] of report.collectives.entries()) {
        expect(at(collectives, row, "name")).toBe(name);
        expect([Number(at(collectives, row, "exposed_seconds_mad")), Number(at(collectives, row, "bytes"))]).toEqual([
          exposedSeconds.mad,
          bytes,
        ]);
      }
    }),
    { numRuns: 40 },
  );
});
