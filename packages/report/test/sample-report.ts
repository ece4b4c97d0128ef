import type {
  Advice,
  CollectiveRow,
  MemoryBlock,
  MemoryProfile,
  OperatorRow,
  OutsideRow,
  ProfileReport,
  Times,
} from "../src/profile-report.ts";
import { seeded } from "@skein/testing";
import type { RankSpans, Span } from "@skein/tensor-core";
import { bucketBytes, parameterCount, type SampleNode, sampleStep } from "./sample-step.ts";

const device = { name: "sample processor, 2 threads", flopsPerSecond: 60e9, bytesPerSecond: 12e9 };
const kernelStartSeconds = 4e-6;
const link = { startupSeconds: 60e-6, secondsPerByte: 1 / 90e6 };

const rooflineSeconds = ({ flops, bytes }: SampleNode): number =>
  Math.max(flops / device.flopsPerSecond, bytes / device.bytesPerSecond);

interface Step {
  readonly ranks: readonly RankSpans[];
  readonly seconds: number;
  readonly collectives: readonly { readonly seconds: number; readonly exposedSeconds: number }[];
}

/**
 * Runs the nodes on every rank. Collectives run one after another, and each rank waits for all collectives before the
 * update.
 */
const runStep = (
  nodes: readonly SampleNode[],
  ranks: number,
  blocks: number,
  buckets: number,
  secondsOf: (node: SampleNode) => number,
): Step => {
  const spans = Array.from({ length: ranks }, (): Span[] => []);
  const clock = spans.map(() => 0);
  const readyAt = Array.from({ length: buckets }, () => 0);
  const startedAt = readyAt.map(() => spans.map(() => 0));
  const compute = (rank: number, node: SampleNode): void => {
    const scope = node.phase === "backward" ? `${node.scope}/backward` : node.scope;
    const startSeconds = clock[rank]!;
    clock[rank] = startSeconds + secondsOf(node);
    spans[rank]!.push({
      name: `${node.operator} ${scope}`,
      track: "compute",
      startSeconds,
      endSeconds: clock[rank]!,
      args: { operator: node.operator, scope, phase: node.phase, bytes: node.resultBytes },
    });
    clock[rank]! += kernelStartSeconds;
    if (node.bucket !== undefined) {
      startedAt[node.bucket]![rank] = clock[rank]!;
      readyAt[node.bucket] = Math.max(readyAt[node.bucket]!, clock[rank]!);
    }
  };
  for (let rank = 0; rank < ranks; rank++) for (const node of nodes) if (node.phase !== "update") compute(rank, node);
  let free = 0;
  const bytes = bucketBytes(blocks, buckets);
  const collectives = readyAt.map((ready, bucket) => {
    const begin = Math.max(ready, free);
    free = begin + link.startupSeconds + ((2 * (ranks - 1)) / ranks) * bytes * link.secondsPerByte;
    const name = `all-reduce bucket-${bucket}`;
    const waits = spans.map((own, rank) => {
      own.push({
        name,
        track: "collectives",
        startSeconds: startedAt[bucket]![rank]!,
        endSeconds: free,
        args: { bytes, axis: "data", algorithm: "ring" },
      });
      const waited = free - clock[rank]!;
      if (waited <= 0) return 0;
      own.push({ name: `wait ${name}`, track: "waiting", startSeconds: clock[rank]!, endSeconds: free });
      clock[rank] = free;
      return waited;
    });
    return { seconds: free - Math.min(...startedAt[bucket]!), exposedSeconds: Math.max(...waits) };
  });
  for (let rank = 0; rank < ranks; rank++) for (const node of nodes) if (node.phase === "update") compute(rank, node);
  return {
    ranks: spans.map((own, rank) => ({ rank, process: "host-a", spans: own })),
    seconds: Math.max(...clock),
    collectives,
  };
};

const times = (median: number, n = 20): Times => ({ median, mad: 0.03 * median, n });

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

const secondsOn = (track: Span["track"], { spans }: RankSpans): number =>
  spans.reduce((sum, span) => sum + (span.track === track ? span.endSeconds - span.startSeconds : 0), 0);

const operatorRows = (nodes: readonly SampleNode[], { ranks, seconds }: Step): OperatorRow[] =>
  [
    ...Map.groupBy(
      nodes,
      ({ operator, scope, phase }) => `${operator} ${phase === "backward" ? `${scope}/backward` : scope}`,
    ),
  ]
    .map(([name, group]): OperatorRow => {
      const { operator, scope, phase } = group[0]!;
      const timesOfRank = ranks.map(({ spans }) =>
        spans.filter((span) => span.name === name).reduce((sum, span) => sum + span.endSeconds - span.startSeconds, 0),
      );
      const sumOf = (value: (node: SampleNode) => number): number => group.reduce((sum, node) => sum + value(node), 0);
      const median = Math.max(...timesOfRank);
      const [flops, bytes, least] = [sumOf((node) => node.flops), sumOf((node) => node.bytes), sumOf(rooflineSeconds)];
      return {
        operator,
        scope,
        phase,
        calls: group.length,
        seconds: times(median),
        share: mean(timesOfRank) / seconds,
        flops,
        bytes,
        rooflineSeconds: least,
        boundBy: flops / device.flopsPerSecond > bytes / device.bytesPerSecond ? "flops" : "bytes",
        predictedSeconds: 1.9 * least + group.length * kernelStartSeconds,
      };
    })
    .sort((a, b) => b.seconds.median - a.seconds.median);

/** Returns the rows of time outside operators: waiting for collectives, and the rest of the step. */
const outsideRows = ({ ranks, seconds }: Step): OutsideRow[] => {
  const [waits, computes] = (["waiting", "compute"] as const).map((track) =>
    ranks.map((rank) => secondsOn(track, rank)),
  ) as [number[], number[]];
  const between = waits.map((wait, rank) => seconds - wait - computes[rank]!);
  return [
    { kind: "waiting", seconds: times(Math.max(...waits)), share: mean(waits) / seconds },
    { kind: "between", seconds: times(Math.max(...between)), share: mean(between) / seconds },
    { kind: "data", seconds: times(0), share: 0 },
    { kind: "host", seconds: times(0), share: 0 },
  ];
};

/**
 * Returns a memory profile in which forward results live until their backward node, and all other results live for
 * three nodes.
 */
const memoryOf = (nodes: readonly SampleNode[], blocks: number): MemoryProfile => {
  const blocksOf = nodes.map(({ operator, scope, phase, resultBytes }, from): MemoryBlock => {
    const to = Math.min(nodes.length - 1, phase === "forward" ? Math.round(nodes.length * 0.85) - from : from + 3);
    return {
      name: `${operator} ${scope}`,
      shape: `f32[${resultBytes / 4}]`,
      bytes: resultBytes,
      from,
      to: Math.max(from, to),
    };
  });
  const liveBytes = nodes.map((_, at) =>
    blocksOf.reduce((sum, block) => sum + (block.from <= at && at <= block.to ? block.bytes : 0), 0),
  );
  return {
    residentBytes: 4 * 4 * parameterCount(blocks),
    liveBytes,
    workspaceBytes: Math.round(1.07 * Math.max(...liveBytes)),
    blocks: blocksOf.sort((a, b) => b.bytes - a.bytes),
  };
};

/** Options of the generated report. */
export interface SampleOptions {
  readonly seed?: number;
  readonly blocks?: number;
  readonly ranks?: number;
  readonly buckets?: number;
}

/** Returns a made-up but consistent report with a small GPT, its buckets, and a simulated prediction. */
export const sampleReport = ({ seed = 1, blocks = 2, ranks = 2, buckets = 3 }: SampleOptions = {}): ProfileReport => {
  const random = seeded(seed);
  const nodes = sampleStep(blocks, buckets);
  const measured = runStep(
    nodes,
    ranks,
    blocks,
    buckets,
    (node) => (1.8 + 0.5 * random()) * rooflineSeconds(node) + kernelStartSeconds,
  );
  const predicted = runStep(nodes, ranks, blocks, buckets, (node) => 1.9 * rooflineSeconds(node) + kernelStartSeconds);
  const exposedSeconds = mean(measured.ranks.map((rank) => secondsOn("waiting", rank)));
  const share = exposedSeconds / measured.seconds;
  const advice: Advice[] = [
    {
      finding: `${Math.round(100 * share)} % of the step is exposed all-reduce of ${buckets} buckets.`,
      cure: "Merge the buckets by what their transfers cost.",
      change: { "exchange.buckets": "mg-wfbp" },
      saves: 0.31 * share,
      basis: "simulated with the links measured on this machine; 20 steps",
    },
    {
      finding: "Two of three matrix products reach less than 60 % of the roofline.",
      basis: "their flops over the peak that was measured with the largest product",
    },
  ];
  return {
    format: "skein-profile",
    version: 1,
    job: "gpt.yaml",
    madeAt: "2026-11-23T09:30:00.000Z",
    machine: "laptop, 2 cores",
    backend: "cpu",
    ranks,
    steps: 20,
    warmUpSteps: 3,
    samplesPerStep: 8 * ranks,
    step: times(measured.seconds),
    exposedSeconds: times(exposedSeconds),
    predictedStepSeconds: predicted.seconds,
    device,
    operators: operatorRows(nodes, measured),
    outside: outsideRows(measured),
    clock: "kernels by the clock of this sample",
    collectives: measured.collectives.map(
      (one, bucket): CollectiveRow => ({
        name: `bucket-${bucket}`,
        kind: "all-reduce",
        axis: "data",
        algorithm: "ring",
        bytes: bucketBytes(blocks, buckets),
        seconds: times(one.seconds),
        exposedSeconds: times(one.exposedSeconds),
        predictedSeconds: predicted.collectives[bucket]!.seconds,
      }),
    ),
    memory: memoryOf(nodes, blocks),
    timeline: measured.ranks,
    predicted: predicted.ranks,
    advice,
  };
};
