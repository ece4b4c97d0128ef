/** Vector sizes and how often each is timed in one run. open-mpi.c has the same table. */
export const sizes: readonly { readonly bytes: number; readonly samples: number }[] = [
  { bytes: 2 ** 16, samples: 500 },
  { bytes: 2 ** 20, samples: 200 },
  { bytes: 2 ** 24, samples: 30 },
  { bytes: 2 ** 26, samples: 15 },
];

/** What a contestant prints for each size, a line of JSON: the slower rank's time of each all-reduce. */
export interface Measurement {
  readonly bytes: number;
  readonly microseconds: readonly number[];
}
