import { MetricTable, Rows } from "@skein/run-files";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeRows } from "../encode-rows.ts";
import { type View, addressOf, defaultView, viewOf } from "./address.ts";
import { axes, extentOf, positionsOf } from "./axis-x.ts";
import { chartPlans, matchesWords } from "./chart-plan.ts";
import { applyRows, type LoadedTables } from "./decode-rows.ts";
import { differingOptions } from "./differing-options.ts";
import { matchesFilter } from "./filter-runs.ts";
import { schemeRules } from "./scheme-rules.ts";
import { Smoothed } from "./smooth.ts";
import { thin } from "./thin.ts";

const numbers = fc.array(fc.oneof(fc.double({ min: -1e6, max: 1e6, noNaN: true }), fc.constant(Number.NaN)), {
  maxLength: 400,
});

describe("thinning", () => {
  test("keeps the minimum and the maximum of the shown points, and adds nothing", () => {
    fc.assert(
      fc.property(numbers, fc.integer({ min: 1, max: 60 }), fc.nat(400), fc.nat(400), (y, columns, a, b) => {
        const x = y.map((_, i) => i);
        const [from, to] = [Math.min(a, b), Math.max(a, b) + 1];
        const inside = y.filter((value, i) => i >= from && i <= to && !Number.isNaN(value));
        const { values, points } = thin(x, y, y.length, { from, to, columns });
        const drawn = values.filter((value) => value !== null);
        expect(values).toHaveLength(2 * columns);
        expect(points).toBe(inside.length);
        expect(drawn.every((value) => inside.includes(value))).toBe(true);
        expect([Math.min(...drawn), Math.max(...drawn)]).toEqual([Math.min(...inside), Math.max(...inside)]);
      }),
    );
  });

  test("a logarithmic axis shows nothing at 0 and below", () => {
    const { values, points } = thin([0, 1, 2], [0, -1, 5], 3, { from: 0, to: 2, columns: 3, above: 0 });
    expect([values.filter((value) => value !== null), points]).toEqual([[5], 1]);
  });
});

test("averages do not depend on how a line grew, and that of a constant is the constant", () => {
  fc.assert(
    fc.property(numbers, fc.nat(400), fc.double({ min: 0, max: 0.99, noNaN: true }), (line, cut, weight) => {
      const values = Float32Array.from(line);
      const [atOnce, grown] = [new Smoothed(weight), new Smoothed(weight)];
      grown.of(values, Math.min(cut, values.length));
      expect(grown.of(values, values.length).slice(0, values.length)).toEqual(
        atOnce.of(values, values.length).slice(0, values.length),
      );
    }),
  );
  const constant = new Smoothed(0.9).of(new Float32Array(5).fill(3), 5).slice(0, 5);
  for (const value of constant) expect(value).toBeCloseTo(3);
});

test("a page that receives rows in any portions has the table of the server", () => {
  const line = fc.record({
    type: fc.constantFrom("step", "evaluation"),
    step: fc.nat(30),
    loss: fc.nat(9),
    own: fc.constantFrom(1, null),
  });
  fc.assert(
    fc.property(fc.array(fc.tuple(line, fc.boolean()), { maxLength: 40 }), (lines) => {
      const table = new MetricTable();
      const page: LoadedTables = { generation: -1, byType: new Map() };
      const pull = (): void => {
        const known = new Map([...page.byType].map(([type, rows]) => [type, rows.length]));
        const parts = encodeRows(table, table.generation, page.generation === table.generation ? known : new Map());
        const bytes = Buffer.concat([...parts]);
        applyRows(page, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer);
      };
      for (const [one, isPulled] of lines) {
        table.takeLine(JSON.stringify(one));
        if (isPulled) pull();
      }
      pull();
      for (const [type, rows] of table.byType) {
        const own = page.byType.get(type) ?? new Rows();
        expect([...own.steps.subarray(0, own.length)]).toEqual([...rows.steps.subarray(0, rows.length)]);
        for (const name of ["loss", "own"])
          for (let row = 0; row < rows.length; row++) expect(own.value(name, row)).toBe(rows.value(name, row));
      }
    }),
  );
});

describe("the filter", () => {
  const run = {
    id: "mnist/1",
    state: "running" as const,
    options: { "optimizer.kind": "adam", batch: "64", "model.channels": "[32,64]" },
  };
  test.each([
    "",
    "mnist",
    "MNIST/",
    "running",
    "optimizer.kind=adam",
    "batch>=64 batch<65",
    "batch=64.0",
    "seed!=1",
    "state=running",
    "model.channels=[32,64]",
    "optimizer.kind = adam batch >= 64",
    "batch=64..64",
    "batch = 1..1e3 seed!=1..2",
  ])("%j matches", (filter) => expect(matchesFilter(run, filter)).toBe(true));
  test.each([
    "mnist/2",
    "optimizer.kind=sgd",
    "optimizer.kind=ada",
    "batch>64",
    "seed=1",
    "seed>0",
    "optimizer.kind>3",
    "mnist batch=1",
    "__proto__=x",
    "constructor!=undefined toString=x",
    "optimizer.kind!=adam",
    "optimizer.kind = sgd",
    "batch=65..128",
    "batch=1..63",
    "batch=..",
    "batch!=1..64",
    "optimizer.kind=1..2",
    "seed=0..9",
  ])("%j does not match", (filter) => expect(matchesFilter(run, filter)).toBe(false));
});

describe("the URL of a view", () => {
  const id = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
  const view: fc.Arbitrary<View> = fc.record({
    runs: fc.option(fc.uniqueArray(id, { maxLength: 4 }), { nil: undefined }),
    filter: fc.string({ unit: "grapheme", maxLength: 12 }),
    charts: fc.string({ unit: "grapheme", maxLength: 12 }),
    axis: fc.constantFrom(...axes),
    smoothing: fc.integer({ min: 0, max: 99 }).map((part) => part / 100),
    isLogarithmic: fc.boolean(),
    range: fc.option(
      fc
        .tuple(fc.double({ noNaN: true, min: -1e9, max: 1e9 }), fc.double({ noNaN: true, min: 1e-3, max: 1e9 }))
        .map(([from, length]) => ({ from: from + 0, to: from + length })),
      { nil: undefined },
    ),
    detailed: fc.option(id, { nil: undefined }),
    traced: fc.option(id, { nil: undefined }),
  });
  test("opens the same view, and that of the default view is empty", () => {
    fc.assert(
      fc.property(view, (own) => {
        expect(viewOf(`#${addressOf(own)}`)).toEqual(own);
      }),
    );
    expect(addressOf(defaultView)).toBe("");
    expect(viewOf("")).toEqual(defaultView);
  });
  test.each([
    "#",
    "#%",
    "#%E0%A4%A&axis=%",
    "#axis=height&smoothing=1&scale=linear&range=3~1",
    "#smoothing=-1&range=1&axis=__proto__",
    "#smoothing=NaN&range=a~b",
    "#smoothing=0x&range=1~Infinity&range=1~2",
    "#smoothing= &range=~&details=&filter=",
    "#anything",
  ])("%j is invalid, and ignored", (address) => expect(viewOf(address)).toEqual(defaultView));
  test("any input gives a view whose own URL gives the same view", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const read = viewOf(text);
        expect(viewOf(addressOf(read))).toEqual(read);
        expect(read.smoothing >= 0 && read.smoothing < 1 && axes.includes(read.axis)).toBe(true);
      }),
    );
  });
});

test("charts are found by words of their titles and quantities", () => {
  const plan = chartPlans([{ type: "evaluation", name: "loss" }]).main[0]!;
  const titles = ["", " ", "held", "OUT loss", "evaluation", "loss evaluation/"];
  expect(titles.map((words) => matchesWords(plan, words))).toEqual(titles.map(() => true));
  expect(["training", "held accuracy"].map((words) => matchesWords(plan, words))).toEqual([false, false]);
});

test("options that differ, and no others", () => {
  expect(
    differingOptions([{ options: { a: "1", b: "2", c: "x" } }, { options: { a: "1", b: "3", constructor: "y" } }]),
  ).toEqual([
    { key: "b", values: ["2", "3"] },
    { key: "c", values: ["x", undefined] },
    { key: "constructor", values: [undefined, "y"] },
  ]);
});

test("charts: training first, ranks' speeds together, others by their prefix, none twice", () => {
  const step = (name: string): { type: string; name: string } => ({ type: "step", name });
  const { main, others } = chartPlans([
    ...[
      "epoch",
      "loss",
      "seconds",
      "exposedSeconds",
      "dataSeconds",
      "block-1.load_E.0",
      "block-1.load_E.10",
      "block-1.load_E.2",
      "own",
    ].map(step),
    { type: "rank-10", name: "ownSeconds" },
    { type: "rank-2", name: "ownSeconds" },
    { type: "evaluation", name: "loss" },
    ...Array.from({ length: 20 }, (_, i) => step(`many/${i}`)),
    step("own"),
  ]);
  expect(main.map(({ title }) => title)).toEqual([
    "Training loss",
    "Held-out loss",
    "Step time",
    "Step time without waits of each rank",
  ]);
  expect(main[2]!.quantities.map(({ name }) => name)).toEqual(["seconds", "exposedSeconds", "dataSeconds"]);
  expect(main[3]!.quantities.map(({ type }) => type)).toEqual(["rank-2", "rank-10"]);
  expect(others.map(({ title, leftOut }) => [title, leftOut])).toEqual([
    ["block-1.load_E", 0],
    ["many", 8],
    ["own", 0],
  ]);
  expect(others[0]!.quantities.map(({ name }) => name)).toEqual([
    "block-1.load_E.0",
    "block-1.load_E.2",
    "block-1.load_E.10",
  ]);
  const all = [...main, ...others].flatMap(({ quantities }) => quantities.map(({ type, name }) => `${type}/${name}`));
  expect(new Set(all).size).toBe(all.length);
});

test("fractional epochs once the second has begun, otherwise as reported", () => {
  const steps = new Rows();
  for (let step = 1; step <= 25; step++) steps.add(step, step, [["epoch", Math.ceil(step / 10)]]);
  expect(positionsOf(steps, "epoch", steps)[14]).toBeCloseTo(1.5);
  const short = new Rows();
  for (let step = 1; step <= 5; step++) short.add(step, step, [["epoch", 1]]);
  expect(positionsOf(short, "epoch", short)[4]).toBe(1);
});

test("charts of few points extend as far as those of all steps, for all runs", () => {
  const run = (first: number, last: number, evaluated: number): { byType: Map<string, Rows> } => {
    const [steps, evaluations] = [new Rows(), new Rows()];
    for (let step = first; step <= last; step++)
      steps.add(step, 10 * step, [["epoch", 1 + Math.floor((step - 1) / 4)]]);
    evaluations.add(evaluated, 10 * evaluated + 5, [["loss", 1]]);
    return {
      byType: new Map([
        ["evaluation", evaluations],
        ["step", steps],
      ]),
    };
  };
  const runs = [run(3, 9, 9), run(1, 6, 6)];
  expect(extentOf(runs, "step")).toEqual({ from: 1, to: 9 });
  expect(extentOf(runs, "time")).toEqual({ from: 10, to: 95 });
  expect(extentOf(runs.slice(1), "epoch")).toEqual({ from: 0.25, to: 1.5 });
  expect(extentOf([], "step")).toEqual({ from: 0, to: 1 });
  expect(extentOf([{ byType: new Map([["evaluation", runs[0]!.byType.get("evaluation")!]]) }], "step")).toEqual({
    from: 9,
    to: 10,
  });
});

const luminance = (colour: string): number => {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
};

test("colours of runs and states are 3 : 1 against the page, in both schemes", () => {
  const blocks = [...schemeRules.matchAll(/\{color-scheme:(light|dark);([^}]*)\}/g)];
  expect(blocks).toHaveLength(3);
  for (const [, , rules] of blocks) {
    const colours = new Map(
      [...rules!.matchAll(/--([\w-]+):(#\w{6})/g)].map(([, name, colour]) => [name!, luminance(colour!)]),
    );
    for (const [name, own] of colours) {
      if (!/^run-|good|bad/.test(name)) continue;
      const page = colours.get("page")!;
      const contrast = (Math.max(own, page) + 0.05) / (Math.min(own, page) + 0.05);
      expect([name, contrast >= 3]).toEqual([name, true]);
    }
  }
});
