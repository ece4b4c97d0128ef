import {
  add,
  bitwiseAnd,
  bitwiseOr,
  bitwiseXor,
  divide,
  type DType,
  equal,
  greater,
  greaterEqual,
  less,
  lessEqual,
  logicalAnd,
  logicalOr,
  logicalXor,
  maximum,
  minimum,
  multiply,
  notEqual,
  type Shape,
  subtract,
  type Tensor,
} from "@skein/tensor-core";
import type { Tolerance } from "../closeness.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { normalArray, uniformArray } from "../seeded.ts";
import { exact, outer, rounded } from "./elementwise-values.ts";

type Binary = (a: Tensor, b: Tensor) => Tensor;

const broadcasts: readonly (readonly [a: Shape, b: Shape])[] = [
  [[], []],
  [[0, 3], [3]],
  [[7], [7]],
  [[5, 7], [7]],
  [
    [5, 7],
    [5, 1],
  ],
  [
    [5, 1],
    [1, 7],
  ],
  [[3, 300], [300]],
  [
    [3, 300],
    [3, 1],
  ],
  [[300, 3], [3]],
  [
    [2, 3, 4, 5],
    [3, 1, 5],
  ],
  [[1030], []],
  [[], [1030]],
];

interface BinaryRow {
  readonly fn: Binary;
  readonly dtypes: readonly DType[];
  readonly tolerance: Tolerance;
  readonly differentiable?: boolean;
}

const comparison = (fn: Binary): BinaryRow => ({
  fn,
  dtypes: ["f32", "i32", "u32", "u8", "bool"],
  tolerance: exact,
});
const logical = (fn: Binary): BinaryRow => ({ fn, dtypes: ["bool"], tolerance: exact });
const bitwise = (fn: Binary): BinaryRow => ({ fn, dtypes: ["i32", "u32"], tolerance: exact });

/** Names of the binary operators that the conformance cases in this file cover. */
export type BinaryName =
  | "add"
  | "subtract"
  | "multiply"
  | "divide"
  | "maximum"
  | "minimum"
  | "equal"
  | "not-equal"
  | "less"
  | "less-equal"
  | "greater"
  | "greater-equal"
  | "logical-and"
  | "logical-or"
  | "logical-xor"
  | "bitwise-and"
  | "bitwise-or"
  | "bitwise-xor";

const binaryRows: { readonly [op in BinaryName]: BinaryRow } = {
  add: { fn: add, dtypes: ["f32", "i32", "u32"], tolerance: rounded, differentiable: true },
  subtract: { fn: subtract, dtypes: ["f32", "i32", "u32"], tolerance: rounded, differentiable: true },
  multiply: { fn: multiply, dtypes: ["f32", "i32", "u32"], tolerance: rounded, differentiable: true },
  divide: { fn: divide, dtypes: ["f32", "i32", "u32"], tolerance: rounded, differentiable: true },
  maximum: { fn: maximum, dtypes: ["f32", "i32", "u32"], tolerance: exact, differentiable: true },
  minimum: { fn: minimum, dtypes: ["f32", "i32", "u32"], tolerance: exact, differentiable: true },
  equal: comparison(equal),
  "not-equal": comparison(notEqual),
  less: comparison(less),
  "less-equal": comparison(lessEqual),
  greater: comparison(greater),
  "greater-equal": comparison(greaterEqual),
  "logical-and": logical(logicalAnd),
  "logical-or": logical(logicalOr),
  "logical-xor": logical(logicalXor),
  "bitwise-and": bitwise(bitwiseAnd),
  "bitwise-or": bitwise(bitwiseOr),
  "bitwise-xor": bitwise(bitwiseXor),
};

export const binaryCases: readonly ConformanceCase[] = Object.entries<BinaryRow>(binaryRows).flatMap(
  ([op, { fn, dtypes: own, tolerance, differentiable = false }]) => [
    ...own.flatMap((dtype): ConformanceCase[] => [
      ...broadcasts.map(([a, b]) => ({
        op,
        name: `[${a.join()}] and [${b.join()}], ${dtype}`,
        fn: fn as ConformanceCase["fn"],
        inputs: [normalArray(a, 11, dtype), normalArray(b, 12, dtype)],
        tolerance,
      })),
      { op, name: `edges, ${dtype}`, fn: fn as ConformanceCase["fn"], inputs: outer(dtype), tolerance },
    ]),
    ...(differentiable
      ? broadcasts.slice(2, 6).map(
          ([a, b]): ConformanceCase => ({
            op,
            name: `gradient, [${a.join()}] and [${b.join()}]`,
            fn: fn as ConformanceCase["fn"],
            inputs: [normalArray(a, 13), uniformArray(b, 0.5, 2, 14)],
            gradient: [0, 1],
            tolerance,
          }),
        )
      : []),
  ],
);
