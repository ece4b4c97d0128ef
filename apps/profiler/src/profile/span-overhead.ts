import { SpanRecorder } from "@skein/tensor-core";
import { median } from "@skein/measuring";

const rounds = 20;
const spansPerRound = 5000;

/**
 * Measures the cost in seconds of recording a span, which reads the clock two times and appends to a list. Takes about
 * 20 ms.
 */
export const spanOverheadSeconds = (): number => {
  const times = Array.from({ length: rounds }, () => {
    const spanSink = new SpanRecorder();
    const startMilliseconds = performance.now();
    for (let i = 0; i < spansPerRound; i++) {
      const startSeconds = spanSink.now();
      spanSink.record({ name: "overhead", track: "compute", startSeconds, endSeconds: spanSink.now() });
    }
    return (performance.now() - startMilliseconds) / 1000 / spansPerRound;
  });
  return median(times);
};
