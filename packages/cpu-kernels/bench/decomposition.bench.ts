// Measures decompositions on one core, compared with PyTorch and LAPACK. Runs of both implementations alternate, so
// that other load affects both equally. Run: node bench/decomposition.bench.ts [names and sizes, such as eigh-512
// qr-512]
import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createCpuBackend } from "@skein/cpu-kernels";
import { median } from "@skein/measuring";
import { symmetricArray } from "@skein/testing";
import {
  cholesky,
  eigh,
  expandDims,
  inverseFromCholesky,
  jit,
  matmul,
  multiply,
  NdArray,
  qr,
  type Tensor,
} from "@skein/tensor-core";

/**
 * Benchmark case of a decomposition. To check the factors, the benchmark computes `product` from them. The result must
 * be the input matrix, or the identity if `toOne`.
 */
interface Decomposition {
  readonly decompose: (a: Tensor) => readonly Tensor[];
  readonly product: (a: Tensor, parts: readonly Tensor[]) => Tensor;
  readonly toOne?: boolean;
}

const decompositions: { readonly [name: string]: Decomposition } = {
  eigh: {
    decompose: (a) => {
      const { values, vectors } = eigh(a);
      return [values, vectors];
    },
    product: (_, [values, vectors]) =>
      matmul(multiply(vectors!, expandDims(values!, { dims: -2 })), vectors!, { transposeB: true }),
  },
  qr: {
    decompose: (a) => {
      const { q, r } = qr(a);
      return [q, r];
    },
    product: (_, [q, r]) => matmul(q!, r!),
  },
  cholesky: {
    decompose: (a) => [cholesky(a)],
    product: (_, [l]) => matmul(l!, l!, { transposeB: true }),
  },
  inverse: {
    decompose: (a) => [inverseFromCholesky(cholesky(a))],
    product: (a, [inverse]) => matmul(a, inverse!),
    toOne: true,
  },
};

/** Returns a symmetric matrix with eigenvalues spread over [1, 3], so that all decompositions accept it. */
const matrixOf = (size: number): NdArray => {
  const values = symmetricArray([], size, 1).toNumbers();
  // Eigenvalues of a symmetric matrix of standard normal entries are within ± 2√size.
  return NdArray.from(
    values.map((x, at) => x / (2.1 * Math.sqrt(size)) + (at % (size + 1) === 0 ? 2 : 0)),
    [size, size],
  );
};

interface PyTorch {
  readonly version: string;
  readonly prepare: (name: string, matrix: NdArray) => void;
  /** Runs the decomposition `count` times. Returns the milliseconds per run. */
  readonly run: (count: number) => Promise<number>;
  readonly end: () => void;
}

const openPyTorch = async (): Promise<PyTorch | undefined> => {
  const python = ["/usr/bin/python3", "python3"].find(
    (command) => spawnSync(command, ["-c", "import torch"], { stdio: "ignore" }).status === 0,
  );
  if (python === undefined) return undefined;
  const child = spawn(python, [fileURLToPath(new URL("decomposition.py", import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1" },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done) throw new Error("PyTorch ended");
    return value;
  };
  return {
    version: await next(),
    prepare: (name, matrix) => {
      child.stdin.write(`${name} ${matrix.shape[0]}\n`);
      child.stdin.write(new Uint8Array(matrix.bytes()));
    },
    run: async (count) => {
      child.stdin.write(`${count}\n`);
      return Number(await next());
    },
    end: () => child.stdin.end(),
  };
};

const backend = await createCpuBackend();

const ours = async (name: string, matrix: NdArray): Promise<(count: number) => Promise<number>> => {
  const { decompose, product, toOne = false } = decompositions[name]!;
  const size = matrix.shape[0]!;
  const a = backend.upload(matrix);
  const check = jit((x: Tensor) => product(x, decompose(x)), backend);
  const made = (await backend.download(await check(a))).toNumbers();
  const error = matrix.toNumbers().reduce((most, x, at) => {
    const expected = toOne ? Number(at % (size + 1) === 0) : x;
    const off = Math.abs(made[at]! - expected);
    return off <= most ? most : off; // keeps NaN, because comparisons with NaN are false
  }, 0);
  if (!(error < 1e-4)) throw new Error(`${name} of ${size}: the parts are off by ${error}`);
  check.release();
  const run = jit((x: Tensor) => decompose(x) as Tensor[], backend);
  return async (count) => {
    const begin = performance.now();
    for (let i = 0; i < count; i++) for (const part of await run(a)) backend.free(part);
    return (performance.now() - begin) / count;
  };
};

const asked = process.argv.slice(2);
const names = asked.length > 0 ? asked : ["eigh-128", "eigh-512", "eigh-1024", "qr-512", "cholesky-512", "inverse-512"];
const pytorch = await openPyTorch();
const { stdout } = process;
stdout.write(`PyTorch ${pytorch?.version ?? "is not installed"}; medians of takes in turn\n`);
for (const problem of names) {
  const [name, size] = problem.split("-") as [string, string];
  const matrix = matrixOf(Number(size));
  const run = await ours(name, matrix);
  pytorch?.prepare(name, matrix);
  await run(2);
  await pytorch?.run(2);
  const count = Math.max(1, Math.round(20 / (await run(1))));
  const [own, theirs]: [number[], number[]] = [[], []];
  for (let take = 0; take < 21; take++) {
    own.push(await run(count));
    if (pytorch !== undefined) theirs.push(await pytorch.run(count));
  }
  const line = `${name} of ${size}: ${median(own).toFixed(2)} ms (best ${Math.min(...own).toFixed(2)})`;
  const beside = `PyTorch ${median(theirs).toFixed(2)} ms (best ${Math.min(...theirs).toFixed(2)})`;
  const ratio = `ratio ${(median(own) / median(theirs)).toFixed(2)}`;
  stdout.write(`${pytorch === undefined ? line : `${line}; ${beside}; ${ratio}`}\n`);
}
pytorch?.end();
