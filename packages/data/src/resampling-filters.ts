/** Names of the resampling filters, as in Pillow. */
export const resamplingFilters = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"] as const;
/** Name of a resampling filter of Pillow. */
export type ResamplingFilter = (typeof resamplingFilters)[number];

/**
 * Weight of a source pixel as a function of its distance from the center of a target pixel, in pixels of the coarser
 * grid.
 */
interface FilterCurve {
  /** Distance at and above which weights are 0. */
  readonly support: number;
  weight(distance: number): number;
}

const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

/** Parameter of Keys' cubic filter, as in Pillow. OpenCV, and PyTorch without antialiasing, use -0.75. */
const cubic = -0.5;

/** Curves of all filters except `nearest`, which has no weights. Source: src/libImaging/Resample.c of Pillow 9.4. */
export const filterCurves: Readonly<Record<Exclude<ResamplingFilter, "nearest">, FilterCurve>> = {
  box: { support: 0.5, weight: (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) },
  bilinear: { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  hamming: { support: 1, weight: (x) => (Math.abs(x) < 1 ? sinc(x) * (0.54 + 0.46 * Math.cos(Math.PI * x)) : 0) },
  bicubic: {
    support: 2,
    weight: (signed) => {
      const x = Math.abs(signed);
      if (x < 1) return ((cubic + 2) * x - (cubic + 3)) * x * x + 1;
      return x < 2 ? (((x - 5) * x + 8) * x - 4) * cubic : 0;
    },
  },
  lanczos: { support: 3, weight: (x) => (x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0) },
};
