import type { Span } from "@skein/tensor-core";

/** Returns the total duration in seconds of the kernel spans among `spans`. */
export const kernelSeconds = (spans: readonly Span[]): number =>
  spans.reduce(
    (sum, { track, startSeconds, endSeconds }) => (track === "compute" ? sum + endSeconds - startSeconds : sum),
    0,
  );
