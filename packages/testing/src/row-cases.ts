import {
  add,
  argmax,
  attention,
  avgPool2d,
  cholesky,
  conv2d,
  crossEntropyPerRow,
  cumsum,
  eigh,
  gather,
  gelu,
  groupedMatmul,
  groupNorm,
  layerNorm,
  logSoftmax,
  logSumExp,
  matmul,
  type MatmulOptions,
  maxPool2d,
  multiply,
  NdArray,
  qr,
  reduceMax,
  relu,
  rmsNorm,
  rotary,
  softmax,
  sort,
  sum,
  type Tensor,
  topK,
  transpose,
  triangularSolve,
  variance,
  vjp,
} from "@skein/tensor-core";
import type { RowCase } from "./row-laws.ts";
import { rowSlice } from "./row-slice.ts";
import { normalArray } from "./seeded.ts";

/**
 * Input of a test case with independent rows (`RowCase`). `dim` is the dimension along which the input is sliced into
 * rows. Absent: every range of rows uses the whole input.
 */
interface RowInput {
  readonly array: NdArray;
  readonly dim?: number;
}

const cut = (array: NdArray, dim = 0): RowInput => ({ array, dim });
const whole = (array: NdArray): RowInput => ({ array });

const rowCase = (name: string, fn: RowCase["fn"], given: readonly RowInput[], dim = 0): RowCase => {
  const first = given.find((input) => input.dim !== undefined)!;
  return {
    name,
    rows: first.array.shape[first.dim!]!,
    inputs: (begin, end) =>
      given.map(({ array, dim: along }) => (along === undefined ? array : rowSlice(array, along, begin, end))),
    fn,
    dim,
  };
};

/**
 * Returns a function that computes the gradient of `fn` with respect to the first operand. The last operand is the
 * cotangent.
 */
const gradient =
  (fn: (...xs: Tensor[]) => Tensor): RowCase["fn"] =>
  (...given) => {
    const operands = given.slice(0, -1);
    return vjp((x: Tensor) => fn(x, ...operands.slice(1)), operands[0]!).pullback(given.at(-1)!) as Tensor;
  };

/**
 * Returns the test case of a matrix product [rows, inner] · [inner, columns] with independent rows. If the first
 * operand is transposed, its rows are its second dimension.
 */
export const productRows = (
  rows: number,
  inner: number,
  columns: number,
  { transposeA = false, transposeB = false }: MatmulOptions = {},
): RowCase =>
  rowCase(
    `matmul [${rows}, ${inner}] · [${inner}, ${columns}]${transposeA ? ", first transposed" : ""}${transposeB ? ", second transposed" : ""}`,
    (a, b) => matmul(a!, b!, { transposeA, transposeB }),
    [
      transposeA ? cut(normalArray([inner, rows], 1), 1) : cut(normalArray([rows, inner], 1)),
      whole(normalArray(transposeB ? [columns, inner] : [inner, columns], 2)),
    ],
  );

/**
 * Returns the test case of a grouped matrix product in which group g has `counts[g]` rows. If only a range of rows is
 * computed, each group contains only its rows inside the range.
 */
export const groupedRows = (counts: readonly number[], inner: number, columns: number): RowCase => {
  const rows = counts.reduce((total, count) => total + count, 0);
  const x = normalArray([rows, inner], 1);
  const w = normalArray([counts.length, inner, columns], 2);
  const ends = counts.map((_, g) => counts.slice(0, g + 1).reduce((total, count) => total + count, 0));
  return {
    name: `groupedMatmul of groups of ${counts.join(", ")} rows`,
    rows,
    inputs: (begin, end) => [
      rowSlice(x, 0, begin, end),
      w,
      NdArray.from(
        ends.map((last, g) => Math.max(0, Math.min(end, last) - Math.max(begin, last - counts[g]!))),
        [counts.length],
        "i32",
      ),
    ],
    fn: (a, b, c) => groupedMatmul(a!, b!, c!),
    dim: 0,
  };
};

const transposes = [false, true].flatMap((transposeA) =>
  [false, true].map((transposeB) => ({ transposeA, transposeB })),
);

// 70 rows exceed a tile of 64. Sums with 600 and 1100 terms exceed the block of 512 terms. One case has a single
// column.
const products: readonly RowCase[] = [
  ...transposes.flatMap((options) => [
    productRows(70, 37, 21, options),
    productRows(70, 1100, 36, options),
    productRows(70, 600, 1, options),
  ]),
  rowCase("batched matmul: entries of the batch", (a, b) => matmul(a!, b!), [
    cut(normalArray([5, 7, 20], 1)),
    cut(normalArray([5, 20, 9], 2)),
  ]),
  rowCase(
    "batched matmul: rows of each entry",
    (a, b) => matmul(a!, b!, { transposeB: true }),
    [cut(normalArray([3, 12, 20], 1), 1), whole(normalArray([3, 9, 20], 2))],
    1,
  ),
  rowCase("matmul with a bias and an activation", (x, w, b) => gelu(add(matmul(x!, w!), b!)), [
    cut(normalArray([70, 40], 1)),
    whole(normalArray([40, 30], 2)),
    whole(normalArray([30], 3)),
  ]),
  rowCase(
    "gradient of matmul towards its rows",
    gradient((x, w) => matmul(x!, w!)),
    [cut(normalArray([70, 40], 1)), whole(normalArray([40, 30], 2)), cut(normalArray([70, 30], 3))],
  ),
  groupedRows([33, 1, 0, 5, 31], 40, 24),
  groupedRows([1, 1, 7], 530, 17),
];

const convolution = (
  name: string,
  [samples, size, channels]: readonly [number, number, number],
  [kernel, perGroup, outChannels]: readonly [number, number, number],
  options: Parameters<typeof conv2d>[2],
): RowCase[] => {
  const x = normalArray([samples, size, size, channels], 1);
  const w = normalArray([kernel, kernel, perGroup, outChannels], 2);
  const forward = (a: Tensor, b: Tensor): Tensor => conv2d(a, b, options);
  const side = Math.ceil(size / (options?.stride === 2 ? 2 : 1));
  return [
    rowCase(`conv2d: samples of ${name}`, forward as RowCase["fn"], [cut(x), whole(w)]),
    rowCase(`gradient of conv2d: samples of ${name}`, gradient(forward as RowCase["fn"]), [
      cut(x),
      whole(w),
      cut(normalArray([samples, side, side, outChannels], 3)),
    ]),
  ];
};

const convolutions: readonly RowCase[] = [
  ...convolution("3 × 3", [4, 8, 8], [3, 8, 12], { padding: "same" }),
  ...convolution("3 × 3, many channels", [8, 8, 32], [3, 32, 32], { padding: "same" }),
  ...convolution("1 × 1, single pixels", [9, 1, 20], [1, 20, 6], {}),
  ...convolution("depthwise", [3, 9, 4], [3, 1, 4], { padding: "same", groups: 4 }),
  ...convolution("stride 2", [4, 8, 3], [3, 3, 5], { padding: "same", stride: 2 }),
  rowCase("maxPool2d: samples", (x) => maxPool2d(x!, { window: 2 }), [cut(normalArray([5, 6, 6, 3], 1))]),
  rowCase("avgPool2d: samples", (x) => avgPool2d(x!, { window: 2 }), [cut(normalArray([5, 6, 6, 3], 1))]),
];

const attended = (name: string, queries: number, options: Parameters<typeof attention>[3]): RowCase[] => {
  const [q, k, v, g] = [queries, 70, 70, queries].map((length, i) => normalArray([3, 2, length, 20], i + 1)) as [
    NdArray,
    NdArray,
    NdArray,
    NdArray,
  ];
  const forward = (a: Tensor, b: Tensor, c: Tensor): Tensor => attention(a, b, c, options);
  return [
    rowCase(`attention: entries of the batch, ${name}`, forward as RowCase["fn"], [cut(q), cut(k), cut(v)]),
    rowCase(`gradient of attention: entries of the batch, ${name}`, gradient(forward as RowCase["fn"]), [
      cut(q),
      cut(k),
      cut(v),
      cut(g),
    ]),
  ];
};

const attentions: readonly RowCase[] = [
  ...attended("all keys", 70, {}),
  ...attended("causal", 70, { causal: true }),
  rowCase(
    "attention: queries",
    (q, k, v) => attention(q!, k!, v!),
    [
      cut(normalArray([2, 2, 70, 20], 1), 2),
      whole(normalArray([2, 2, 90, 20], 2)),
      whole(normalArray([2, 2, 90, 20], 3)),
    ],
    2,
  ),
  rowCase(
    "attention: entries of the batch with key lengths",
    (q, k, v, lengths) => attention(q!, k!, v!, { keyLengths: lengths! }),
    [...[1, 2, 3].map((seed) => cut(normalArray([3, 2, 66, 8], seed))), cut(NdArray.from([66, 3, 0], [3], "i32"))],
  ),
];

const [gain, shift] = [2, 3].map((seed) => whole(normalArray([150], seed))) as [RowInput, RowInput];
const wide = cut(normalArray([70, 150], 1));
const long = cut(normalArray([9, 3000], 1));
const cotangent = cut(normalArray([70, 150], 4));

const rowwise: readonly RowCase[] = [
  rowCase("layerNorm", (x, g, b) => layerNorm(x!, g!, b!), [wide, gain, shift]),
  rowCase(
    "gradient of layerNorm",
    gradient((x, g, b) => layerNorm(x!, g!, b!)),
    [wide, gain, shift, cotangent],
  ),
  rowCase("rmsNorm", (x, g) => rmsNorm(x!, g!), [wide, gain]),
  rowCase(
    "gradient of rmsNorm",
    gradient((x, g) => rmsNorm(x!, g!)),
    [wide, gain, cotangent],
  ),
  rowCase("softmax", (x) => softmax(x!), [wide]),
  rowCase("softmax of long rows", (x) => softmax(x!), [long]),
  rowCase(
    "gradient of softmax",
    gradient((x) => softmax(x!)),
    [wide, cotangent],
  ),
  rowCase("logSoftmax", (x) => logSoftmax(x!), [wide]),
  rowCase("logSumExp", (x) => logSumExp(x!, { dims: 1 }), [wide]),
  rowCase("crossEntropyPerRow", (x, labels) => crossEntropyPerRow(x!, labels!), [
    wide,
    cut(
      NdArray.from(
        Array.from({ length: 70 }, (_, i) => (i * 37) % 150),
        [70],
        "i32",
      ),
    ),
  ]),
  rowCase("sum along the last dimension", (x) => sum(x!, { dims: 1 }), [wide]),
  rowCase("sum of long rows", (x) => sum(x!, { dims: 1 }), [long]),
  rowCase("sum along a dimension in the middle", (x) => sum(x!, { dims: 1 }), [cut(normalArray([20, 300, 5], 1))]),
  rowCase("sum of products", (x, y) => sum(multiply(x!, y!), { dims: 1 }), [wide, cotangent]),
  rowCase("variance", (x) => variance(x!, { dims: 1 }), [wide]),
  rowCase("reduceMax", (x) => reduceMax(x!, { dims: 1 }), [wide]),
  rowCase("argmax", (x) => argmax(x!, { dim: 1 }), [wide]),
  rowCase("cumsum", (x) => cumsum(x!, { dim: 1 }), [wide]),
  rowCase("cumsum of long rows", (x) => cumsum(x!, { dim: 1 }), [long]),
  rowCase("topK", (x) => topK(x!, 5)[0], [wide]),
  rowCase("sort", (x) => sort(x!, { dim: 1 })[0], [cut(normalArray([9, 33], 1))]),
  rowCase("groupNorm: samples", (x, g, b) => groupNorm(x!, g!, b!, { groups: 2 }), [
    cut(normalArray([5, 4, 4, 6], 1)),
    whole(normalArray([6], 2)),
    whole(normalArray([6], 3)),
  ]),
  rowCase("gelu of one number per row", (x) => gelu(x!), [cut(normalArray([70], 1))]),
  rowCase("a chain of elementwise functions", (x, b) => relu(add(multiply(softmax(x!), 3), b!)), [wide, shift]),
  rowCase("rows after a transpose", (x) => softmax(transpose(x!, [1, 0])), [cut(normalArray([150, 70], 1), 1)]),
  rowCase("gather", (table, picks) => gather(table!, picks!), [
    whole(normalArray([11, 7], 1)),
    cut(
      NdArray.from(
        Array.from({ length: 70 }, (_, i) => (i * 7) % 11),
        [70],
        "i32",
      ),
    ),
  ]),
  rowCase("rotary", (x) => rotary(x!), [cut(normalArray([4, 2, 6, 8], 1))]),
  rowCase("cholesky: matrices of a batch", (x) => cholesky(matmul(x!, x!, { transposeB: true })), [
    cut(normalArray([4, 6, 20], 1)),
  ]),
  rowCase("qr: matrices of a batch", (x) => qr(x!).r, [cut(normalArray([4, 20, 6], 1))]),
  rowCase("eigh: matrices of a batch", (x) => eigh(matmul(x!, x!, { transposeB: true })).vectors, [
    cut(normalArray([4, 6, 20], 1)),
  ]),
  rowCase(
    "triangularSolve: matrices of a batch",
    (l, b) => triangularSolve(l!, b!, { lower: true, transpose: false }),
    [cut(normalArray([4, 6, 6], 1)), cut(normalArray([4, 6, 3], 2))],
  ),
];

/**
 * Test cases of functions with independent rows. Rows computed separately must be bitwise equal to the same rows of the
 * complete result.
 */
export const rowCases: readonly RowCase[] = [...products, ...convolutions, ...attentions, ...rowwise];
