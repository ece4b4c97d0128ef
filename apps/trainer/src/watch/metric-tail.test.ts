import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { LineSplitter } from "./line-splitter.ts";
import { MetricTable } from "./metric-table.ts";
import { MetricTail, readTail } from "./metric-tail.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-tail-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** All that a table tells, as plain values. */
const told = (table: MetricTable): unknown => ({
  skipped: table.skippedLines,
  rows: Object.fromEntries(
    [...table.byType].map(([type, rows]) => [
      type,
      {
        steps: [...rows.steps.subarray(0, rows.length)],
        times: [...rows.times.subarray(0, rows.length)],
        columns: Object.fromEntries(
          [...rows.columns].map(([name]) => [
            name,
            Array.from(rows.steps.subarray(0, rows.length), (_, row) => rows.value(name, row)),
          ]),
        ),
      },
    ]),
  ),
});

/** Read all that is new. @returns whether anything was. */
const readAll = (path: string, tail: MetricTail): boolean => {
  let reading = readTail(path, tail.place);
  const isNew = reading !== undefined && (reading.isAnew || reading.piece.length > 0);
  for (; reading !== undefined; reading = tail.share < 1 ? readTail(path, tail.place) : undefined) tail.take(reading);
  return isNew;
};

const tableOf = (content: Buffer): MetricTable => {
  const table = new MetricTable();
  const splitter = new LineSplitter(
    (text) => table.takeLine(text),
    () => table.skipLine(),
  );
  splitter.take(content);
  return table;
};

const value = fc.oneof(fc.double({ noNaN: true }), fc.constantFrom(null, "word", true, [1], { a: 1 }), fc.nat());
const name = fc.constantFrom("loss", "seconds", "größe", "損失", "block-1.load_E.0", "__proto__", "constructor", "🧶");
const metricLine = fc
  .tuple(
    fc.constantFrom("step", "evaluation", "update", "own/type"),
    fc.nat(40),
    fc.dictionary(name, value, { maxKeys: 4 }),
  )
  .map(([type, step, quantities]) => JSON.stringify({ type, step, ...quantities }));
const wrongLine = fc.constantFrom(
  "",
  " ",
  "{",
  "null",
  "7",
  "[]",
  '{"type":"step"}',
  '{"step":1}',
  '{"type":1,"step":2}',
  "ÿ\u0000",
  "\r",
);
const content = fc
  .tuple(
    fc.array(fc.oneof({ weight: 5, arbitrary: metricLine }, { weight: 1, arbitrary: wrongLine }), { maxLength: 30 }),
    fc.boolean(),
  )
  .map(([lines, isWhole]) => {
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    return isWhole ? bytes : bytes.subarray(0, Math.max(0, bytes.length - 3));
  });

describe("a table of metrics", () => {
  test("is the same however its bytes are cut into pieces, within characters too", () => {
    fc.assert(
      fc.property(content, fc.array(fc.nat()), (bytes, cuts) => {
        const table = new MetricTable();
        const splitter = new LineSplitter(
          (text) => table.takeLine(text),
          () => table.skipLine(),
        );
        const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
        for (let i = 1; i < at.length; i++) {
          const piece = Buffer.from(bytes.subarray(at[i - 1], at[i]));
          splitter.take(piece);
          piece.fill(0x78); // whoever reads a file reads into it again
        }
        expect(told(table)).toEqual(told(tableOf(bytes)));
      }),
    );
  });

  test("never has steps that fall, nor times that fall, and knows each number where it stood", () => {
    fc.assert(
      fc.property(content, (bytes) => {
        for (const rows of tableOf(bytes).byType.values())
          for (let row = 1; row < rows.length; row++)
            expect(rows.steps[row]).toBeGreaterThanOrEqual(rows.steps[row - 1]!);
      }),
    );
    const table = tableOf(
      Buffer.from(
        '{"type":"step","step":1,"a":1}\n{"type":"step","step":2,"b":null}\n{"type":"step","step":3,"a":3,"b":1e999}\n',
      ),
    );
    const rows = table.byType.get("step")!;
    expect([1, 2, 3].map((_, row) => rows.value("a", row))).toEqual([1, Number.NaN, 3]);
    expect([...rows.columns.keys()]).toEqual(["a", "b"]);
    expect(rows.last("b")).toBeUndefined();
  });

  test("goes back where training goes back: steps and evaluations of a later step are gone, and their time", () => {
    const step = (number: number, loss: number): string =>
      JSON.stringify({ type: "step", step: number, loss, seconds: 2 });
    const lines = [
      step(1, 9),
      step(2, 8),
      '{"type":"evaluation","step":2,"loss":5}',
      step(3, 7),
      '{"type":"evaluation","step":3,"loss":4}',
      step(2, 6),
    ];
    const table = tableOf(Buffer.from(`${lines.join("\n")}\n`));
    expect(told(table)).toMatchObject({
      rows: { step: { steps: [1, 2], times: [2, 4], columns: { loss: [9, 6] } }, evaluation: { steps: [] } },
    });
    expect(table.generation).toBe(1);
    table.takeLine('{"type":"step","step":2}');
    table.takeLine('{"type":"step","step":1}');
    expect(table.byType.get("step")!.value("loss", 0)).toBeNaN(); // nothing of the step that was done before
  });

  test("a line that never ends is counted, not kept", () => {
    const table = new MetricTable();
    const splitter = new LineSplitter(
      (text) => table.takeLine(text),
      () => table.skipLine(),
    );
    const piece = Buffer.alloc(2 ** 22, 0x61);
    for (let i = 0; i < 6; i++) splitter.take(piece);
    splitter.take(Buffer.from('\n{"type":"step","step":1}\n'));
    expect([table.skippedLines, table.byType.get("step")!.length]).toEqual([1, 1]);
  });
});

describe("a tail", () => {
  type Act =
    | { readonly kind: "append" | "anew" | "in place"; readonly bytes: Buffer }
    | { readonly kind: "cut"; readonly share: number };
  const act: fc.Arbitrary<Act> = fc.oneof(
    fc.record({ kind: fc.constantFrom("append" as const, "anew" as const, "in place" as const), bytes: content }),
    fc.record({ kind: fc.constant("cut" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  );
  let number = 0;

  test("knows what a fresh reader would know, after any appends, cuts, and files written anew", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(act, fc.boolean()), { maxLength: 8 }), (acts) => {
        const path = join(folder, `metrics-${number++}.jsonl`);
        writeFileSync(path, "");
        const tail = new MetricTail();
        let now = Buffer.alloc(0);
        for (const [one, isRead] of acts) {
          if (one.kind === "append") {
            now = Buffer.concat([now, one.bytes]);
            appendFileSync(path, one.bytes);
          } else if (one.kind === "cut") {
            now = now.subarray(0, Math.floor(now.length * one.share));
            writeFileSync(path, now);
          } else {
            // What was there is marked, as times in real lines differ: the same text again is no other file.
            now = Buffer.concat([Buffer.from(`{"type":"mark","step":${number},"at":${Math.random()}}\n`), one.bytes]);
            const target = one.kind === "anew" ? `${path}.tmp` : path;
            writeFileSync(target, now);
            if (one.kind === "anew") renameSync(target, path);
          }
          if (isRead) {
            const before = tail.generation;
            readAll(path, tail);
            expect(tail.generation).toBeGreaterThanOrEqual(before);
          }
        }
        readAll(path, tail);
        expect(told(tail.table)).toEqual(told(tableOf(now)));
      }),
      { numRuns: 60 },
    );
  });

  test("of a file that is not there says so, and reads it when it comes", () => {
    const [path, tail] = [join(folder, "later.jsonl"), new MetricTail()];
    expect(() => readTail(path, tail.place)).toThrow("ENOENT");
    writeFileSync(path, '{"type":"step","step":1}\n');
    expect(readAll(path, tail)).toBe(true);
    expect(readAll(path, tail)).toBe(false);
  });
});

test("a table of more lines than it may keep thins out from its beginning, and its end is whole", () => {
  fc.assert(
    fc.property(fc.integer({ min: 4, max: 20 }), fc.integer({ min: 2, max: 200 }), (maxRows, count) => {
      const table = new MetricTable(maxRows);
      let cuts = 0;
      for (let step = 1; step <= count; step++) {
        const before = table.generation;
        table.takeLine(
          JSON.stringify({ type: "step", step, seconds: 0.5, loss: step, ...(step % 3 === 0 && { third: step }) }),
        );
        cuts += table.generation - before;
      }
      const rows = table.byType.get("step")!;
      const steps = [...rows.steps.subarray(0, rows.length)];
      expect(rows.length).toBeLessThanOrEqual(maxRows);
      expect(cuts > 0).toBe(count > maxRows);
      expect(steps.at(-1)).toBe(count);
      const gaps = steps.slice(1).map((step, i) => step - steps[i]!);
      expect(gaps).toEqual(gaps.toSorted((a, b) => b - a)); // the older, the wider
      expect(Math.min(...gaps, 1)).toBe(1);
      for (const [row, step] of steps.entries()) {
        expect([rows.times[row], rows.value("loss", row)]).toEqual([step / 2, step]);
        expect(rows.value("third", row)).toBe(step % 3 === 0 ? step : Number.NaN);
      }
      expect(rows.last("loss")).toEqual({ step: count, value: count });
      table.takeLine(JSON.stringify({ type: "step", step: 1, seconds: 1 })); // training goes back
      expect([...rows.steps.subarray(0, rows.length)]).toEqual([1]);
    }),
  );
});
