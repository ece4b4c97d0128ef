import type { KernelStep, StepProgram } from "@skein/cost-model/pricing";
import type { RankSpans, Span, Track } from "@skein/tensor-core";

/** For tests: creates a span on a track, with times in milliseconds. */
export const span = (track: Track, name: string, begin: number, end: number, args: Span["args"] = {}): Span => ({
  track,
  name,
  startSeconds: begin / 1000,
  endSeconds: end / 1000,
  args,
});

/**
 * For tests: creates a run of three steps of 10 ms, with 2 ms between steps. Rank r computes r ms longer than rank 0,
 * and waits r ms less.
 */
export const madeUpRun = (numRanks: number): RankSpans[] =>
  Array.from({ length: numRanks }, (_, rank) => ({
    rank,
    process: "host:1",
    spans: [1, 2, 3].flatMap((step) => {
      const begin = 12 * (step - 1);
      const at = (ms: number): number => begin + ms;
      const collective = {
        operator: "all-reduce",
        bytes: 400,
        axis: "data",
        ranks: Array.from({ length: numRanks }, (__, i) => i),
      };
      return [
        span("data", "next batch", at(0), at(0.5)),
        span("compute", "matmul layer", at(1), at(3 + rank), { phase: "forward" }),
        span("compute", "matmul layer/backward", at(3 + rank), at(5 + rank), { phase: "backward" }),
        span("compute", "matmul layer/backward", at(5 + rank), at(6 + rank), { phase: "backward" }),
        span("collectives", "all-reduce exchange-0", at(6 + rank), at(9), collective),
        span("waiting", "wait all-reduce exchange-0", at(6 + rank), at(9), collective),
        span("compute", "fused update", at(9), at(9.5), { phase: "update" }),
        span("steps", `step ${step}`, at(0), at(10), { exposedMilliseconds: 3 - rank }),
        span("host", `save after step ${step}`, at(10), at(11.5)),
      ];
    }),
  }));

const kernel = (name: string, flops: number, bytes: number): KernelStep => {
  const [operator, scope] = name.split(" ") as [string, string];
  return {
    kind: "kernel",
    node: 0,
    name,
    scope,
    args: {},
    operator,
    price: { flops, bytes, seconds: 0.002, rooflineSeconds: 0.001, boundBy: "flops", basis: "assumed" },
  };
};

/** For tests: program of a step of the run created by `madeUpRun`. */
export const madeUpProgram: StepProgram = [
  kernel("matmul layer", 4e6, 1000),
  kernel("matmul layer/backward", 4e6, 1000),
  kernel("matmul layer/backward", 2e6, 1000),
  {
    kind: "start",
    node: 3,
    name: "all-reduce exchange-0",
    scope: "exchange-0",
    args: {},
    collective: "all-reduce",
    axis: "data",
    bytes: 400,
    price: { algorithm: "ring-all-reduce", segments: 1, seconds: 0.004, sentBytes: 400, phases: [] },
  },
  { kind: "wait", node: 4, name: "all-reduce exchange-0", scope: "exchange-0", args: {}, start: 3 },
  kernel("fused update", 100, 1e6),
];
