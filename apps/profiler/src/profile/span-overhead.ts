import { SpanRecorder } from "@skein/tensor-core";
import { median } from "@skein/measuring";

const rounds = 20;
const spansPerRound = 5000;

/** Measure what it costs to record a span: two looks at the clock, and a row in a list. Takes some 20 ms. */
export const spanOverheadSeconds = (): number => {
  const times = Array.from({ length: rounds }, () => {
    const spanSink = new SpanRecorder();
    const began = performance.now();
    for (let i = 0; i < spansPerRound; i++) {
      const startSeconds = spanSink.now();
      spanSink.record({ name: "overhead", track: "compute", startSeconds, endSeconds: spanSink.now() });
    }
    return (performance.now() - began) / 1000 / spansPerRound;
  });
  return median(times);
};
