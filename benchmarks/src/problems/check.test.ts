import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { complaint } from "./check.ts";
import type { Problem } from "./problem.ts";
import { readProblem, writeProblem } from "./problem-files.ts";

const matmul: Problem = {
  name: "tiny",
  kind: "matmul",
  learningRate: 0,
  tensors: [
    { name: "a", dtype: "f32", shape: [2, 2] },
    { name: "b", dtype: "f32", shape: [2, 2] },
  ],
};
const training: Problem = { ...matmul, kind: "training-step" };
let root: string;
let folder: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "skein-bench-"));
  folder = writeProblem(matmul, root);
});
afterAll(() => rmSync(root, { recursive: true }));

test("accepts the true product and refuses a transposed one", () => {
  const { a, b } = readProblem(folder).values;
  const at = (matrix: ArrayLike<number>, i: number, j: number): number => matrix[i * 2 + j]!;
  const product = [0, 1, 2, 3].map(
    (n) => at(a!.data, n >> 1, 0) * at(b!.data, 0, n & 1) + at(a!.data, n >> 1, 1) * at(b!.data, 1, n & 1),
  );
  expect(complaint(matmul, folder, product)).toBeUndefined();
  expect(complaint(matmul, folder, [product[0]!, product[2]!, product[1]!, product[3]!])).toMatch(
    /differs from the f64 product/,
  );
});

test("refuses losses that do not fall, are not finite or differ from the others'", () => {
  expect(complaint(training, folder, [2.3, 2.2, 2.1], [2.3, 2.2, 2.1])).toBeUndefined();
  expect(complaint(training, folder, [2.3, 2.3, 2.4])).toMatch(/does not fall/);
  expect(complaint(training, folder, [2.3, Number.NaN, 2.1])).toMatch(/not finite/);
  expect(complaint(training, folder, [2.3, 2.1, 2.0], [2.3, 2.2, 2.1])).toMatch(/at step 1/);
});
