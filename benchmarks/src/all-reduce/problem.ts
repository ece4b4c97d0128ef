import { ArgumentError } from "@skein/tensor-core";

/** Size of an f32 vector in bytes, and the number of timed all-reduces per run. */
export interface Size {
  readonly bytes: number;
  readonly samples: number;
}

export const sizes: readonly Size[] = [
  { bytes: 2 ** 12, samples: 1000 },
  { bytes: 2 ** 16, samples: 500 },
  { bytes: 2 ** 20, samples: 200 },
  { bytes: 2 ** 22, samples: 60 },
  { bytes: 2 ** 24, samples: 30 },
  { bytes: 2 ** 26, samples: 15 },
];

/** Sizes with few samples, enough to see that every implementation runs. */
export const quickSizes: readonly Size[] = sizes.map(({ bytes, samples }) => ({
  bytes,
  samples: Math.min(5, samples),
}));

/**
 * Returns the number of untimed all-reduces of a size before the first timed one: a fifth of the samples, at least 10.
 * open-mpi.c, gloo.cc and gloo.py use the same number.
 */
export const warmUpsOf = ({ samples }: Size): number => Math.max(10, Math.floor(samples / 5));

/**
 * Line of JSON that an implementation prints for each size after its `Conditions`. `microseconds` has the slowest
 * rank's time for each all-reduce.
 */
export interface Measurement {
  readonly bytes: number;
  readonly microseconds: readonly number[];
}

/** Formats sizes as in the implementations' command lines: 4096:1000. */
export const formatSizes = (wanted: readonly Size[]): string[] =>
  wanted.map(({ bytes, samples }) => `${bytes}:${samples}`);

/** Parses sizes in the format of `formatSizes`. @throws ArgumentError if the text has another format. */
export const parseSizes = (words: readonly string[]): Size[] => {
  if (words.length === 0) throw new ArgumentError("no sizes are given; write them as bytes:samples, such as 4096:1000");
  return words.map((word) => {
    const [bytes, samples] = (/^(\d+):(\d+)$/.exec(word)?.slice(1) ?? []).map(Number);
    if (bytes === undefined || samples === undefined || bytes === 0 || bytes % 4 !== 0 || samples === 0)
      throw new ArgumentError(
        `"${word}" is no size; write bytes:samples, such as 4096:1000, with whole numbers of f32`,
      );
    return { bytes, samples };
  });
};
