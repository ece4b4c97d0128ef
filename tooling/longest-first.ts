import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that compile shaders for minutes on a software adapter whose cache is cold. Short to read, so vitest, which goes by size, would begin the first of them last. */
export const longest: readonly string[] = [
  "packages/gpu-kernels/test/conformance.test.ts",
  "packages/gpu-kernels/src/kernels/rows/rows.test.ts",
  "packages/gpu-kernels/src/kernels/matmul/matmul.test.ts",
  "packages/gpu-kernels/src/kernels/attention/attention.test.ts",
  "packages/gpu-kernels/test/browser-conformance.test.ts",
  "packages/gpu-kernels/src/kernels/convolution/convolution.test.ts",
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
