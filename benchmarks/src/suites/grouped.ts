import { openBlas, findBlas } from "@skein/blas/node";
import { createCpuBackend } from "@skein/cpu-kernels";
import { measure, type Summary, summarize } from "@skein/measuring";
import { type Backend, groupedMatmul, jit, matmul, NdArray, type Tensor, vjp } from "@skein/tensor-core";
import { makeRow, type Row } from "../report/row.ts";

const rounds = 7;
const peer = "one matmul of as many flops";
/** Required minimum speed of the grouped product relative to a single product, for equally loaded groups. */
const target = 0.8;

/** Sizes of an expert feed-forward layer: number of groups, number of rows over all groups, input and output width. */
interface Sizes {
  readonly groups: number;
  readonly rows: number;
  readonly inner: number;
  readonly columns: number;
}

const sizes: readonly Sizes[] = [
  { groups: 8, rows: 1024, inner: 64, columns: 128 },
  { groups: 8, rows: 2048, inner: 128, columns: 256 },
  { groups: 8, rows: 2048, inner: 256, columns: 1024 },
  { groups: 64, rows: 4096, inner: 256, columns: 512 },
];

/** Relative number of rows of each group, by name of the distribution. */
const loads: Readonly<Record<string, (group: number) => number>> = {
  even: () => 1,
  // The first of eight groups has about a third of all rows.
  skewed: (group) => 1 / (1 + group),
};

const countsOf = ({ groups, rows }: Sizes, share: (group: number) => number): number[] => {
  const shares = Array.from({ length: groups }, (_, group) => share(group));
  const whole = shares.reduce((total, own) => total + own, 0);
  const counts = shares.map((own) => Math.floor((rows * own) / whole));
  counts[0]! += rows - counts.reduce((total, own) => total + own, 0);
  return counts;
};

const filled = (shape: readonly number[]): NdArray => {
  const length = shape.reduce((product, size) => product * size, 1);
  return NdArray.from(
    Array.from({ length }, (_, i) => Math.sin(12.9898 * i)),
    shape,
  );
};

type Product = (x: Tensor, w: Tensor, counts: Tensor) => Tensor;

/**
 * Measures the milliseconds of the grouped product and of the single product, which take turns. `withGradients`:
 * measures forward and both gradients instead of forward only.
 */
const timesOf = async (
  backend: Backend,
  { groups, rows, inner, columns }: Sizes,
  counts: readonly number[],
  withGradients: boolean,
): Promise<readonly [grouped: Summary, one: Summary]> => {
  const x = backend.upload(filled([rows, inner]));
  const w = backend.upload(filled([groups, inner, columns]));
  const v = backend.upload(filled([inner, columns]));
  const given = backend.upload(NdArray.from(counts, [groups], "i32"));
  const compiled = ([groupedMatmul, (a, b) => matmul(a, b)] satisfies Product[]).map((product: Product) =>
    jit((a: Tensor, b: Tensor, c: Tensor): readonly Tensor[] => {
      if (!withGradients) return [product(a, b, c)];
      const { value, pullback } = vjp(([left, right]: readonly [Tensor, Tensor]) => product(left, right, c), [a, b]);
      return [value, ...pullback(value)];
    }, backend),
  );
  const calls = compiled.map((fn, i) => async () => {
    const results = await fn(x, i === 0 ? w : v, given);
    for (const result of results) backend.free(result);
  });
  const samples = calls.map((): number[] => []);
  for (let round = 0; round < rounds; round++)
    for (let turn = 0; turn < calls.length; turn++) {
      const at = (round + turn) % calls.length;
      samples[at]!.push((await measure(calls[at]!, { samples: 5 })).median);
    }
  for (const array of [x, w, v, given]) backend.free(array);
  for (const fn of compiled) fn.release();
  return [summarize(samples[0]!), summarize(samples[1]!)];
};

const benchOn = async (name: string, backend: Backend): Promise<Row[]> => {
  const rows: Row[] = [];
  for (const own of sizes)
    for (const [load, share] of Object.entries(loads))
      for (const withGradients of [false, true]) {
        const [ours, theirs] = await timesOf(backend, own, countsOf(own, share), withGradients);
        const { groups, rows: numRows, inner, columns } = own;
        rows.push(
          makeRow({
            benchmark: `grouped ${groups} × ${numRows / groups}×${columns}×${inner}, ${load}${withGradients ? ", with gradients" : ""}, ${name}`,
            unit: "ms",
            better: "lower",
            peer,
            ours,
            theirs,
            target: load === "even" ? target : undefined,
          }),
        );
      }
  return rows;
};

/** Compares the grouped matrix product with a single product, on one thread, with and without a BLAS. */
export const benchGrouped = async (): Promise<Row[]> => {
  const blas = findBlas();
  const rows = await benchOn("WebAssembly", await createCpuBackend({ threads: 1 }));
  if (blas === undefined) return rows;
  return [...rows, ...(await benchOn("BLAS", await createCpuBackend({ threads: 1, blas: openBlas(blas) })))];
};
