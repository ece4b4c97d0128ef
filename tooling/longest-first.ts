import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Test files that take ten seconds or more, often because they compile shaders on a software adapter with a cold cache.
 * vitest sorts test files by size, so it would start these small files last.
 */
export const longest: readonly string[] = [
  "packages/gpu-kernels/test/conformance.test.ts",
  "packages/gpu-kernels/test/browser-conformance.full.test.ts",
  "packages/gpu-kernels/test/conformance.full.test.ts",
  "packages/gpu-kernels/src/kernels/rows/row-layout.full.test.ts",
  "packages/gpu-kernels/src/kernels/top-k/top-k.full.test.ts",
  "packages/mpi/test/mpirun.test.ts",
  "apps/trainer/test/second-order.test.ts",
  "apps/trainer/test/processes.test.ts",
  "apps/trainer/test/webgpu.test.ts",
  "packages/collectives/test/threads.test.ts",
  "apps/trainer/test/launched.test.ts",
  "examples/browser-mnist/test/page.test.ts",
  "apps/trainer/test/experts.test.ts",
  "apps/trainer/test/placement.test.ts",
  "apps/trainer/test/tensor.test.ts",
  "apps/trainer/test/failures.test.ts",
  "packages/collectives/test/express.test.ts",
  "packages/gpu-kernels/src/kernels/rows/rows.test.ts",
  "packages/gpu-kernels/src/kernels/matmul/matmul.test.ts",
  "packages/gpu-kernels/src/kernels/attention/attention.test.ts",
  "apps/trainer/test/launch-command.test.ts",
  "apps/trainer/test/mpi.test.ts",
  "packages/collectives/test/rendezvous-faults.test.ts",
  "apps/trainer/test/overlap.test.ts",
  "packages/collectives/test/processes.test.ts",
  "packages/compressors/test/on-backends.test.ts",
  "packages/gpu-kernels/test/browser-conformance.test.ts",
  "packages/cpu-kernels/test/conformance.test.ts",
  "packages/gpu-kernels/src/kernels/convolution/convolution.test.ts",
  "apps/trainer/test/blas.test.ts",
  "apps/trainer/test/certificates-during-run.test.ts",
  "packages/collectives/test/laws.test.ts",
  "apps/trainer/test/attacks/attacks.test.ts",
  "apps/trainer/test/run.test.ts",
  "apps/profiler/test/command-line.test.ts",
  "apps/trainer/test/bad-input.test.ts",
  "apps/trainer/test/train.test.ts",
  "apps/trainer/test/own-things.test.ts",
];

const rankOf = ({ moduleId }: TestSpecification): number => {
  const index = longest.findIndex((file) => moduleId.endsWith(`/${file}`));
  return index === -1 ? longest.length : index;
};

/**
 * Starts the slowest test files first, so that they do not run at the end while other cores are idle. Other files
 * remain in vitest's order.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
