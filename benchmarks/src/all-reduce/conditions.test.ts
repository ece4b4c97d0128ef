import { cpus } from "node:os";
import { expect, test } from "vitest";
import { conditionsHere, countProcessors, describeConditions, readReport } from "./conditions.ts";

test("a contestant's first line says how it ran, the others what it measured", () => {
  const conditions = { processors: 1, of: 2, singleCopy: "cma" };
  const measurement = { bytes: 4096, microseconds: [1.5, 2] };
  const lines = [conditions, measurement, measurement].map((line) => JSON.stringify(line));
  expect(readReport(`${lines.join("\n")}\n`)).toEqual({ conditions, measurements: [measurement, measurement] });
});

test.each(["", '{"bytes":4096,"microseconds":[1]}\n'])(
  "a contestant that does not say how it ran is refused: %j",
  (stdout) => {
    expect(() => readReport(stdout)).toThrow("did not say on how many processors");
  },
);

test("bound or not, and how messages are copied, in words", () => {
  expect(describeConditions({ processors: 1, of: 2, singleCopy: "cma" })).toBe(
    "bound to 1 of 2 processors, single copy by cma",
  );
  expect(describeConditions({ processors: 4, of: 4, singleCopy: "none" })).toBe("not bound, no single copy");
  expect(describeConditions({ processors: 4, of: 4, singleCopy: "" })).toBe("not bound");
});

test("processors of a mask are counted, and those of this process are some of the machine's", () => {
  expect(["3", "0000000f", "80000001", "e"].map(countProcessors)).toEqual([2, 4, 2, 3]);
  const { processors, of } = conditionsHere();
  expect(of).toBe(cpus().length);
  expect(processors).toBeGreaterThanOrEqual(1);
  expect(processors).toBeLessThanOrEqual(of);
});
