import { styleText } from "node:util";
import { asTyped } from "@skein/cli/node";
import { visibleLine } from "@skein/tensor-core/backend";
import { createLogUpdate } from "log-update";
import { formatSeconds } from "./summary.ts";

/** Progress of a run after a step. */
export interface StepProgress {
  readonly step: number;
  readonly steps: number;
  /** Epoch number, from 1. */
  readonly epoch: number;
  readonly loss: number;
  /** Loss in bits per byte. Only for models that predict bytes. */
  readonly bitsPerByte?: number | undefined;
  readonly bitsPerToken?: number | undefined;
  /** Share of the images that came from the cache, 0 to 1. Absent: no cache. */
  readonly cacheHitRate?: number | undefined;
  /** Samples per second. Absent for the first step, whose time includes compilation. */
  readonly samplesPerSecond?: number | undefined;
  readonly secondsLeft?: number | undefined;
}

/** Shows the progress of a run to the user. */
export interface Progress {
  update(standing: StepProgress): void;
  /** Prints a permanent line. */
  note(line: string): void;
  close(): void;
}

const figures = ({
  step,
  steps,
  epoch,
  loss,
  bitsPerByte,
  bitsPerToken,
  cacheHitRate,
  samplesPerSecond,
  secondsLeft,
}: StepProgress): string =>
  [
    `step ${String(step).padStart(String(steps).length)}/${steps}`,
    `epoch ${epoch}`,
    `loss ${loss.toFixed(4)}`,
    ...(bitsPerByte === undefined ? [] : [`${bitsPerByte.toFixed(3)} bits per byte`]),
    ...(bitsPerToken === undefined ? [] : [`${bitsPerToken.toFixed(3)} bits per token`]),
    ...(cacheHitRate === undefined ? [] : [`cache ${Math.round(100 * cacheHitRate)} %`]),
    ...(samplesPerSecond === undefined ? [] : [`${Math.round(samplesPerSecond)} samples/s`]),
    ...(secondsLeft === undefined ? [] : [`${formatSeconds(secondsLeft)} left`]),
  ].join("  ");

const bar = (done: number, width: number): string => {
  const full = Math.round(done * width);
  return "█".repeat(full) + "░".repeat(width - full);
};

/** Shows progress on a single line, which is redrawn at most ten times a second. */
const terminalProgress = (stream: NodeJS.WriteStream, clock: () => number): Progress => {
  const draw = createLogUpdate(stream, { showCursor: true });
  const intervalMs = 100;
  let drawnAt = -Infinity;
  return {
    update: (standing) => {
      const last = standing.step === standing.steps;
      if (!last && clock() - drawnAt < intervalMs) return;
      drawnAt = clock();
      const text = figures(standing);
      const width = Math.max(0, Math.min(30, (stream.columns ?? 80) - text.length - 3));
      draw(`${styleText("cyan", bar(standing.step / standing.steps, width), { stream })} ${text}`);
    },
    note: (line) => {
      draw.clear();
      stream.write(`${line}\n`);
    },
    close: () => draw.done(),
  };
};

/** Prints a progress line about every five seconds, and a line for the last step. */
const plainProgress = (write: (line: string) => void, clock: () => number): Progress => {
  const intervalMs = 5000;
  let writtenAt = -Infinity;
  return {
    update: (standing) => {
      if (standing.step !== standing.steps && clock() - writtenAt < intervalMs) return;
      writtenAt = clock();
      write(figures(standing));
    },
    note: write,
    close: () => {},
  };
};

/**
 * Creates a progress display: a bar on a terminal, plain lines for pipes and files, nothing if `quiet`. Output goes to
 * `stream` (stderr), so that stdout contains only results.
 */
export const makeProgress = ({
  stream,
  quiet,
  clock = () => performance.now(),
}: {
  readonly stream: NodeJS.WriteStream;
  readonly quiet: boolean;
  readonly clock?: () => number;
}): Progress => {
  if (quiet) return { update: () => {}, note: () => {}, close: () => {} };
  // A terminal without a size, such as that of a recorder, cannot redraw a line.
  const progress =
    stream.isTTY && stream.columns !== 0
      ? terminalProgress(stream, clock)
      : plainProgress((line) => void stream.write(`${line}\n`), clock);
  return { ...progress, note: (line) => progress.note(visibleLine(asTyped(line))) };
};
