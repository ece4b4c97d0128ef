import { parseOverride } from "@skein/job/node";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { numberAt, overridesAt, type Range, searchSpace, settingOf } from "./search-space.ts";

describe("--grid and --random", () => {
  test("set values, and ranges on a scale", () => {
    expect(searchSpace(["optimizer.kind=adam,sgd", "compression={kind: identity}"], ["seed=log-int:1..1e3"])).toEqual([
      { kind: "choice", path: ["optimizer", "kind"], values: ["adam", "sgd"] },
      { kind: "choice", path: ["compression"], values: [{ kind: "identity" }] },
      { kind: "range", path: ["seed"], low: 1, high: 1000, scale: "log", isWhole: true },
    ]);
    expect(searchSpace([], ["a=-.5..2"])).toMatchObject([{ low: -0.5, high: 2, scale: "linear", isWhole: false }]);
  });

  test.each<[readonly string[], readonly string[], string]>([
    [[], [], "there is nothing to try"],
    [["batch"], [], "--grid batch: must begin with a key of the job and ="],
    [["batch="], [], "a value is missing"],
    [["batch=32,,64"], [], "the value is not valid YAML"],
    [["batch=32,32"], [], "32 occurs twice"],
    [["batch=[1"], [], "the value is not valid YAML"],
    [[], ["=1..2"], "must begin with a key"],
    [[], ["rate=1"], "must have the form key=low..high"],
    [[], ["rate=loc:1..2"], "loc:1 is not a number"],
    [[], ["rate=1..2..3"], "2..3 is not a number"],
    [[], ["rate=1..1"], "the first must be smaller"],
    [[], ["rate=2..1"], "the first must be smaller"],
    [[], ["rate=0..Infinity"], "Infinity is not a number"],
    [[], ["rate=log:-1..1"], "a log scale must start above 0"],
    [[], ["rate=int:0.5..2"], "int: is for whole numbers"],
    [["batch=1,2"], ["batch=int:1..2"], "batch and batch set the same key"],
    [["optimizer={kind: sgd}"], ["optimizer.weightDecay=0..1"], "optimizer and optimizer.weightDecay set the same"],
    [["data.judgeBy=training"], [], "data.judgeBy cannot be searched"],
    [["__proto__.x=1"], [], "must read key=value"],
  ])("%j %j: %s", (grid, random, message) => {
    expect(() => searchSpace(grid, random)).toThrow(message);
  });
});

test("a value is printed as --set reads it", () => {
  const numbers = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0));
  const plain = fc.oneof(fc.string(), fc.integer(), numbers, fc.boolean(), fc.constantFrom("yes", "null", "true", "1"));
  fc.assert(
    fc.property(fc.oneof(plain, fc.record({ kind: fc.string(), weights: fc.array(plain) })), (value) => {
      const dimension = { path: ["a", "b"] };
      expect(parseOverride(settingOf(dimension, value))).toMatchObject({ path: ["a", "b"], value });
    }),
  );
  const [dimension] = searchSpace(["a=yes,3"], []);
  expect(overridesAt([dimension!], ["yes"])[0]!.origin).toBe("--grid a=yes");
});

test("numbers of a range lie in it, and increase with the fraction", () => {
  const range = fc.record({
    low: fc.integer({ min: 1, max: 50 }),
    width: fc.integer({ min: 1, max: 1e6 }),
    scale: fc.constantFrom("linear" as const, "log" as const),
    isWhole: fc.boolean(),
  });
  fc.assert(
    fc.property(
      range,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (r, a, b) => {
        const one: Range = { kind: "range", path: ["x"], ...r, high: r.low + r.width };
        const [x, y] = [numberAt(one, Math.min(a, b)), numberAt(one, Math.max(a, b))];
        expect(x).toBeLessThanOrEqual(y);
        expect(x).toBeGreaterThanOrEqual(one.low);
        expect(y).toBeLessThanOrEqual(one.high);
        if (r.isWhole) expect(Number.isInteger(x)).toBe(true);
        expect(numberAt(one, 0) / one.low).toBeCloseTo(1, 3);
        expect(numberAt(one, 1) / one.high).toBeCloseTo(1, 3);
      },
    ),
  );
});

test("numbers of a narrow range are printed distinctly", () => {
  const [range] = searchSpace([], ["x=1000.1..1000.2"]) as [Range];
  expect([0, 0.25, 0.5, 1].map((share) => numberAt(range, share))).toEqual([1000.1, 1000.125, 1000.15, 1000.2]);
});
