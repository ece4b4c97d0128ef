import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LineSplitter } from "@skein/cli/node";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { MetricTable } from "./metric-table.ts";
import { MetricTail, readTail } from "./metric-tail.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-tail-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the content of a table as plain values. */
const plainOf = (table: MetricTable): unknown => ({
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

/**
 * Reads all new data.
 * @returns whether there was new data.
 */
const readAll = (path: string, tail: MetricTail): boolean => {
  let reading = readTail(path, tail.place);
  const isNew = reading !== undefined && (reading.isReplaced || reading.piece.length > 0);
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
  test("is the same however its bytes are split, within characters too", () => {
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
          piece.fill(0x78); // a reader overwrites its buffer
        }
        expect(plainOf(table)).toEqual(plainOf(tableOf(bytes)));
      }),
    );
  });

  test("never has decreasing steps or times, and keeps the position of each number", () => {
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

  test("goes back when training goes back: steps and evaluations of later steps are dropped, with their time", () => {
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
    expect(plainOf(table)).toMatchObject({
      rows: { step: { steps: [1, 2], times: [2, 4], columns: { loss: [9, 6] } }, evaluation: { steps: [] } },
    });
    expect(table.generation).toBe(1);
    table.takeLine('{"type":"step","step":2}');
    table.takeLine('{"type":"step","step":1}');
    expect(table.byType.get("step")!.value("loss", 0)).toBeNaN(); // nothing of the earlier version of the step
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

  test("has the content of a fresh reader, after any appends, truncations and rewrites", () => {
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
            // Each rewrite contains a unique mark, like the times in real lines, because identical content counts as
            // the same file.
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
        expect(plainOf(tail.table)).toEqual(plainOf(tableOf(now)));
      }),
      { numRuns: 60 },
    );
  });

  test("of a file that does not exist says so, and reads it when it appears", () => {
    const [path, tail] = [join(folder, "later.jsonl"), new MetricTail()];
    expect(() => readTail(path, tail.place)).toThrow("ENOENT");
    writeFileSync(path, '{"type":"step","step":1}\n');
    expect(readAll(path, tail)).toBe(true);
    expect(readAll(path, tail)).toBe(false);
  });
});

test("a table with too many lines thins out from its beginning, and its end is complete", () => {
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
      expect(gaps).toEqual(gaps.toSorted((a, b) => b - a)); // older rows are sparser
      expect(Math.min(...gaps, 1)).toBe(1);
      for (const [row, step] of steps.entries()) {
        expect([rows.times[row], rows.value("loss", row)]).toEqual([step / 2, step]);
        expect(rows.value("third", row)).toBe(step % 3 === 0 ? step : Number.NaN);
      }
      expect(rows.last("loss")).toEqual({ step: count, value: count });
      table.takeLine(JSON.stringify({ type: "step", step: 1, seconds: 1 })); // training returns to an earlier step
      expect([...rows.steps.subarray(0, rows.length)]).toEqual([1]);
    }),
  );
});

test("a table of any lines stays within its limit, and continues like a table without it", () => {
  const line = fc.record({
    type: fc.constantFrom("step", "evaluation", "a", "b"),
    step: fc.nat(400),
    names: fc.array(fc.nat(60), { maxLength: 12 }),
  });
  fc.assert(
    fc.property(fc.array(line, { maxLength: 80 }), fc.integer({ min: 300, max: 2000 }), (lines, maxValues) => {
      const [bounded, whole] = [new MetricTable(1000, maxValues), new MetricTable()];
      let step = 0;
      for (const { type, step: ahead, names } of lines) {
        step += ahead;
        const text = JSON.stringify({ type, step, ...Object.fromEntries(names.map((name) => [`n${name}`, step])) });
        bounded.takeLine(text);
        whole.takeLine(text);
        const rows = [...bounded.byType.values()];
        expect(rows.reduce((sum, { length, columns }) => sum + length * (columns.size + 4), 0)).toBeLessThanOrEqual(
          maxValues,
        );
      }
      for (const [type, rows] of whole.byType) {
        const own = bounded.byType.get(type)!;
        const last = (one: typeof rows): readonly unknown[] => [
          one.steps[one.length - 1],
          ...[...rows.columns.keys()].map((name) => one.value(name, one.length - 1)),
        ];
        expect(last(own)).toEqual(last(rows));
      }
    }),
  );
});

test("a wide line behind many short ones, many types and lines that go back and forth take bounded memory", () => {
  const arraysOf = (table: MetricTable): number =>
    [...table.byType.values()]
      .flatMap(({ steps, times, columns }) => [steps, times, ...columns.values()])
      .reduce((sum, { byteLength }) => sum + byteLength, 0);
  const wide = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`n${i}`, i]));
  const table = new MetricTable();
  for (let step = 1; step <= 100_000; step++) table.takeLine(`{"type":"step","step":${step},"seconds":1}`);
  table.takeLine(JSON.stringify({ type: "step", step: 100_001, ...wide }));
  expect(arraysOf(table)).toBeLessThan(2 ** 26);
  expect(table.byType.get("step")!.value("n1999", table.byType.get("step")!.length - 1)).toBe(1999);

  for (let i = 0; i < 20_000; i++) table.takeLine(`{"type":"type ${i}","step":1,"a${i}":1}`);
  expect(table.byType.size).toBe(512);
  expect(table.skippedLines).toBe(20_000 - 511);
  expect([...table.byType.values()].reduce((sum, { columns }) => sum + columns.size, 0)).toBeLessThan(2 ** 14);

  const before = table.generation;
  for (let i = 0; i < 50_000; i++) table.takeLine(`{"type":"step","step":${200_000 - (i % 2)}}`);
  expect(table.generation - before).toBeLessThan(1100); // at most 1000 returns to an earlier step, and a few thinnings
  expect(arraysOf(table)).toBeLessThan(2 ** 27);
});

test("an unchanged file is not opened again", () => {
  const path = join(folder, "old.jsonl");
  writeFileSync(path, '{"type":"step","step":1}\n');
  utimesSync(path, 1e9, 1e9);
  const tail = new MetricTail();
  expect(readAll(path, tail)).toBe(true);
  const { inode, bytes, writtenAt } = tail.place.stamp!;
  expect([inode, bytes, writtenAt]).toEqual([statSync(path).ino, 25, 1e12]);
  // Size, time and inode are unchanged, but the content differs, which only opening the file would show.
  writeFileSync(path, '{"type":"step","step":2}\n');
  utimesSync(path, 1e9, 1e9);
  expect(readTail(path, tail.place)).toBeUndefined();
  writeFileSync(path, '{"type":"step","step":3}\n');
  expect(readAll(path, tail)).toBe(true);
  expect(tail.table.byType.get("step")!.steps[0]).toBe(3);
});

test("nothing but a regular file is read", () => {
  mkdirSync(join(folder, "folder"));
  symlinkSync("old.jsonl", join(folder, "link"));
  execFileSync("mkfifo", [join(folder, "pipe")]);
  for (const name of ["folder", "pipe", "link"])
    expect(() => readTail(join(folder, name), new MetricTail().place)).toThrow(/no regular file|ELOOP/);
});
