import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Files that take half a minute and more, most of them to compile shaders on a software adapter whose cache is cold.
 * Short to read, so vitest, which goes by size, would begin them last.
 */
export const longest: readonly string[] = [
  "packages/gpu-kernels/test/conformance.test.ts",
  "packages/gpu-kernels/test/browser-conformance.full.test.ts",
  "packages/gpu-kernels/test/conformance.full.test.ts",
  "packages/gpu-kernels/src/kernels/rows/row-layout.full.test.ts",
  "packages/gpu-kernels/src/kernels/top-k/top-k.full.test.ts",
  "packages/compressors/test/on-backends.test.ts",
  "apps/trainer/test/processes.test.ts",
  "apps/trainer/test/webgpu.test.ts",
  "packages/gpu-kernels/src/kernels/rows/rows.test.ts",
  "apps/trainer/test/launched.test.ts",
  "packages/collectives/test/laws.test.ts",
  "packages/mpi/test/mpirun.test.ts",
  "packages/gpu-kernels/src/kernels/matmul/matmul.test.ts",
  "packages/gpu-kernels/src/kernels/attention/attention.test.ts",
  "apps/trainer/test/failures.test.ts",
  "apps/trainer/test/mpi.test.ts",
  "packages/gpu-kernels/test/browser-conformance.test.ts",
  "apps/trainer/test/attacks/attacks.test.ts",
  "apps/trainer/test/overlap.test.ts",
  "apps/trainer/test/train.test.ts",
  "apps/trainer/test/own-things.test.ts",
];

const placeOf = ({ moduleId }: TestSpecification): number => {
  const place = longest.findIndex((file) => moduleId.endsWith(`/${file}`));
  return place === -1 ? longest.length : place;
};

/** Begins with what takes longest, so that it does not end alone; the rest in vitest's own order. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => placeOf(a) - placeOf(b));
  }
}
