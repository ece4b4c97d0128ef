import { digitsText } from "@skein/report";
import type { BackendName } from "../backend/backend.ts";
import type { BestSoFar } from "../evaluation/best-so-far.ts";
import type { EvaluatedOn } from "../evaluation/evaluation-figures.ts";

/** Figures at the end of a run; the last line of output with `--json`. */
export interface Summary {
  /** Samples that `testLoss`, `testAccuracy` and the figures derived from them are computed on. */
  readonly evaluatedOn: EvaluatedOn;
  /** Right answers among the held-out samples, 0 to 1; classifiers. */
  readonly testAccuracy?: number;
  /** Mean loss on held-out samples: nats, but of values whatever the model's loss is. */
  readonly testLoss: number;
  /** `testLoss / ln 2`; language models of bytes. */
  readonly bitsPerByte?: number;
  /** The same of a language model of tokens. */
  readonly bitsPerToken?: number;
  /** `exp(testLoss)`: among how many equally likely bytes or tokens the model would have to guess; language models. */
  readonly perplexity?: number;
  /** Names of the classes, by number. Absent: classes have numbers only. */
  readonly classNames?: readonly string[];
  /** Figures of the model's own, by name. */
  readonly metrics?: Readonly<Record<string, number>>;
  readonly backend: BackendName;
  /** Steps whose f16 gradients overflowed, so that their update was left out; mixed precision only. */
  readonly skippedSteps?: number;
  readonly samplesPerSecond: number;
  /** Part of the time of its steps that rank 0 spent waiting for collectives; several ranks only. */
  readonly exposedShare?: number;
  /** Part of the time of its steps that rank 0 spent waiting for samples. */
  readonly dataShare?: number;
  /** Part of rank 0's images that came from the cache; where there is one. */
  readonly cacheHitRate?: number;
  /** Images that could not be decoded, and that others took the places of; absent where there were none. */
  readonly damagedImages?: number;
  /** Samples of a stream that were left out, likewise. */
  readonly leftOutSamples?: number;
  /** Payload bytes that a rank sent while training. */
  readonly bytesSentPerRank: number;
  /** What a dense ring all-reduce of the gradients would have sent. */
  readonly denseBytesPerRank: number;
  /** Greatest resident memory of the whole process. */
  readonly peakMemoryBytes: number;
  /** From the start of the program; of several jobs of a file, from the end of the one before. */
  readonly seconds: number;
  /** The best of the run's evaluations, by which figure, and the steps done then; where these are compared. */
  readonly best?: Pick<BestSoFar, "figure" | "value" | "step">;
  readonly checkpoint: string;
}

/** What a run is compared with others by: of one that keeps its best checkpoint that is what people go on with. */
export const judgedBy = ({
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

/** Tokens of experts, activations and factors travel beside gradients, so that it may be more. */
const ratioOf = (timesLess: number): string =>
  timesLess >= 1 ? `${timesLess.toFixed(1)} × less` : `${(1 / timesLess).toFixed(1)} × as much`;

/** Samples in memory are nearly always there, which is not worth a line. */
const leastToldShare = 0.02;

/** The summary for people, a line per figure. */
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
      : [["perplexity", `${perplexity.toFixed(2)}: as unsure as a guess among so many`] as [string, string]]),
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
            `${(summary.exposedShare * 100).toFixed(1)} % of the time went to communication that computation did not hide: waiting for other ranks' gradients`,
          ] as [string, string],
        ]),
    ...((summary.dataShare ?? 0) < leastToldShare && summary.cacheHitRate === undefined
      ? []
      : [
          [
            "data",
            `${((summary.dataShare ?? 0) * 100).toFixed(1)} % of the time went to waiting for samples${summary.cacheHitRate === undefined ? "" : `; ${(summary.cacheHitRate * 100).toFixed(1)} % of images came from the cache`}`,
          ] as [string, string],
        ]),
    ...(summary.damagedImages === undefined
      ? []
      : [
          [
            "damaged",
            `${summary.damagedImages} ${summary.damagedImages === 1 ? "image" : "images"} could not be decoded; the next sound one took the place of each`,
          ] as [string, string],
        ]),
    ...(summary.leftOutSamples === undefined
      ? []
      : [
          [
            "left out",
            `${summary.leftOutSamples} ${summary.leftOutSamples === 1 ? "sample" : "samples"} of the stream that could not be used`,
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
