import type { Span } from "@skein/tensor-core";

/** What the kernels among some spans took, one by one. */
export const kernelSeconds = (spans: readonly Span[]): number =>
  spans.reduce(
    (sum, { track, startSeconds, endSeconds }) => (track === "compute" ? sum + endSeconds - startSeconds : sum),
    0,
  );
