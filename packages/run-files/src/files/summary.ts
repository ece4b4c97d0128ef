import { digitsText } from "@skein/report";
import type { BestSoFar } from "./best-so-far.ts";
import type { EvaluatedOn } from "./evaluation-figures.ts";

/** Metrics at the end of a run; the last line of output with `--json`. */
export interface Summary {
  /** Samples on which `testLoss`, `testAccuracy` and the metrics derived from them are computed. */
  readonly evaluatedOn: EvaluatedOn;
  /** Share of correctly classified held-out samples, 0 to 1. Only for classifiers. */
  readonly testAccuracy?: number;
  /** Mean loss over the held-out samples, in nats. If the model predicts values, in the unit of the model's loss. */
  readonly testLoss: number;
  /** Loss in bits per byte, `testLoss / ln 2`. Only for language models that predict bytes. */
  readonly bitsPerByte?: number;
  /** Loss in bits per token, `testLoss / ln 2`. Only for language models that predict tokens. */
  readonly bitsPerToken?: number;
  /**
   * Perplexity, `exp(testLoss)`: number of equally likely bytes or tokens with the same loss. Only for language models.
   */
  readonly perplexity?: number;
  /** Class names, by class number. Absent: classes have no names. */
  readonly classNames?: readonly string[];
  /** Metrics defined by the model, by name. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly backend: "cpu" | "webgpu";
  /** Number of steps whose update was skipped because f16 gradients overflowed. Only with mixed precision. */
  readonly skippedSteps?: number;
  readonly samplesPerSecond: number;
  /** Share of step time that rank 0 spent waiting for collectives, 0 to 1. Only with several ranks. */
  readonly exposedShare?: number;
  /** Share of step time that rank 0 spent waiting for samples, 0 to 1. */
  readonly dataShare?: number;
  /** Share of rank 0's images that came from the cache, 0 to 1. Absent: no cache. */
  readonly cacheHitRate?: number;
  /** Number of images that could not be decoded and were replaced. Absent: no images were replaced. */
  readonly damagedImages?: number;
  /** Number of skipped samples of a stream. Absent: no samples were skipped. */
  readonly leftOutSamples?: number;
  /** Payload bytes sent by one rank during training. */
  readonly bytesSentPerRank: number;
  /** Payload bytes per rank that a dense ring all-reduce of the gradients would have sent. */
  readonly denseBytesPerRank: number;
  /** Peak resident memory of the whole process in bytes. */
  readonly peakMemoryBytes: number;
  /**
   * Seconds since the start of the program. For a file with several jobs, seconds since the end of the previous job.
   */
  readonly seconds: number;
  /** Best evaluation of the run: metric name, metric value, and step. Absent: evaluations are not compared. */
  readonly best?: Pick<BestSoFar, "figure" | "value" | "step">;
  readonly checkpoint: string;
}

/**
 * Returns the metrics by which a run is compared with other runs. For a run that saves its best checkpoint, these are
 * the metrics of that checkpoint.
 */
export const evaluatedBy = ({
  testLoss,
  testAccuracy,
  best,
}: Summary): { readonly loss: number | null; readonly accuracy?: number } => {
  const loss = best?.figure === "loss" ? best.value : testLoss;
  return { loss, ...(testAccuracy !== undefined && loss === testLoss && { accuracy: testAccuracy }) };
};

const units = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export const formatBytes = (bytes: number): string => {
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 2 ** (10 * power);
  return `${power === 0 ? value : value.toFixed(value < 10 ? 2 : 1)} ${units[power]}`;
};

export const formatSeconds = (seconds: number): string => {
  if (!Number.isFinite(seconds)) return "-";
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
  const two = (value: number): string => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
};

/**
 * Formats the ratio of dense all-reduce bytes to sent bytes. The ratio may be below 1, because expert tokens,
 * activations and factors are sent in addition to gradients.
 */
const ratioOf = (timesLess: number): string =>
  timesLess >= 1 ? `${timesLess.toFixed(1)} × less` : `${(1 / timesLess).toFixed(1)} × as much`;

/**
 * Smallest share of time spent waiting for samples that the summary reports. Waits for samples in memory are shorter.
 */
const minReportedShare = 0.02;

/** Formats the summary for the user, one line per metric. */
export const formatSummary = (summary: Summary): string[] => {
  const {
    evaluatedOn,
    testAccuracy,
    testLoss,
    bitsPerByte,
    bitsPerToken,
    perplexity,
    best,
    bytesSentPerRank,
    denseBytesPerRank: dense,
  } = summary;
  const ratio = bytesSentPerRank > 0 && dense > 0 ? ` (${ratioOf(dense / bytesSentPerRank)})` : "";
  const rows: [string, string][] = [
    ...(testAccuracy === undefined
      ? []
      : [[`${evaluatedOn} accuracy`, `${(testAccuracy * 100).toFixed(2)} %`] as [string, string]]),
    [
      `${evaluatedOn} loss`,
      `${testLoss.toFixed(4)}${testAccuracy === undefined && perplexity === undefined ? "" : " nats"}`,
    ],
    ...(bitsPerByte === undefined ? [] : [["bits per byte", bitsPerByte.toFixed(4)] as [string, string]]),
    ...(bitsPerToken === undefined ? [] : [["bits per token", bitsPerToken.toFixed(4)] as [string, string]]),
    ...(perplexity === undefined
      ? []
      : [
          [
            "perplexity",
            `${perplexity.toFixed(2)}: as uncertain as a choice among that many equally likely values`,
          ] as [string, string],
        ]),
    ...Object.entries(summary.metrics ?? {}).map(([name, value]): [string, string] => [name, digitsText(value, 4)]),
    ...(best === undefined
      ? []
      : [
          ["best", `${best.figure} ${best.value?.toFixed(4) ?? "not finite"}, after step ${best.step}`] as [
            string,
            string,
          ],
        ]),
    ["backend", summary.backend],
    ...(summary.skippedSteps === undefined
      ? []
      : [["skipped steps", String(summary.skippedSteps)] as [string, string]]),
    ["speed", `${Math.round(summary.samplesPerSecond)} samples/s`],
    ...(summary.exposedShare === undefined
      ? []
      : [
          [
            "exposed",
            `${(summary.exposedShare * 100).toFixed(1)} % of the time was communication that computation did not hide: waiting for the gradients of other ranks`,
          ] as [string, string],
        ]),
    ...((summary.dataShare ?? 0) < minReportedShare && summary.cacheHitRate === undefined
      ? []
      : [
          [
            "data",
            `${((summary.dataShare ?? 0) * 100).toFixed(1)} % of the time was spent waiting for samples${summary.cacheHitRate === undefined ? "" : `; ${(summary.cacheHitRate * 100).toFixed(1)} % of images came from the cache`}`,
          ] as [string, string],
        ]),
    ...(summary.damagedImages === undefined
      ? []
      : [
          [
            "damaged",
            `${summary.damagedImages} ${summary.damagedImages === 1 ? "image" : "images"} could not be decoded; each was replaced by the next valid image`,
          ] as [string, string],
        ]),
    ...(summary.leftOutSamples === undefined
      ? []
      : [
          [
            "skipped",
            `${summary.leftOutSamples} unusable ${summary.leftOutSamples === 1 ? "sample" : "samples"} of the stream`,
          ] as [string, string],
        ]),
    ["sent per rank", `${formatBytes(bytesSentPerRank)}, dense all-reduce: ${formatBytes(dense)}${ratio}`],
    ["peak memory", formatBytes(summary.peakMemoryBytes)],
    ["time", `${summary.seconds.toFixed(1)} s`],
    ["checkpoint", summary.checkpoint],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`);
};
