import type { Geometry } from "./geometry.ts";

/**
 * One phase of an axis: the target positions `phase + phases · i`, which have the same taps. Tap t has kernel index
 * `first + t · step` and source position `i · stride + offset + t · dilation`.
 */
export interface Phase {
  readonly first: number;
  readonly taps: number;
  readonly offset: number;
}

/** One dimension of a gather: the vertical or the horizontal dimension. */
export interface Axis {
  readonly source: number;
  readonly target: number;
  readonly kernel: number;
  readonly stride: number;
  /** Distance between the source pixels of adjacent taps. Negative if later taps read earlier pixels. */
  readonly dilation: number;
  readonly step: number;
  readonly phases: readonly Phase[];
  /** Number of positions per phase, ⌈target / phases⌉. Positions after the end of the target are not written. */
  readonly positions: number;
}

/**
 * Sizes of a gather: `target[n, i, j, column] = Σ_taps Σ_q source[n, i', j', q] · weight[tap, q, column]` for each
 * group, where (i', j') is the source position of the tap. Convolutions and their image gradients have this form, in
 * which one invocation can compute each sum independently.
 */
export interface Gather {
  readonly batch: number;
  readonly vertical: Axis;
  readonly horizontal: Axis;
  readonly groups: number;
  /** Number of source channels per group. The sums run over these channels and the taps. */
  readonly inner: number;
  /** Number of target channels per group. */
  readonly columns: number;
  /**
   * Whether the weight has layout [tap, column, q], with q over all groups. If false, the layout is [tap, q, column],
   * with column over all groups.
   */
  readonly transposed: boolean;
}

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));

/**
 * Returns the gather of a convolution, `y[n, i, j, o] = Σ x[n, i·s − p + r·d, …, q] · w[r, c, q, o]`, with a single
 * phase.
 */
export const forwardGather = (geometry: Geometry): Gather => {
  const { batch, image, channels, kernel, positions, outChannels, stride, before, dilation, groups } = geometry;
  const axis = (dim: 0 | 1): Axis => ({
    source: image[dim],
    target: positions[dim],
    kernel: kernel[dim],
    stride: stride[dim],
    dilation: dilation[dim],
    step: 1,
    phases: [{ first: 0, taps: kernel[dim], offset: -before[dim] }],
    positions: positions[dim],
  });
  return {
    batch,
    vertical: axis(0),
    horizontal: axis(1),
    groups,
    inner: channels / groups,
    columns: outChannels / groups,
    transposed: false,
  };
};

/**
 * Returns the gather of the image gradient, `dx[n, h, …, q] = Σ g[n, i, …, o] · w[r, …, q, o]` over the taps with `i·s
 * = h + p − r·d`. Pixels with the same remainder `h mod s` have the same taps, `r ≡ first (mod s / gcd(s, d))`, along
 * which i decreases by `d / gcd(s, d)`. Therefore each remainder is a convolution of stride 1, without multiplications
 * by the zeros between strided pixels.
 */
export const backwardGather = (geometry: Geometry): Gather => {
  const { batch, image, channels, kernel, positions, outChannels, stride, before, dilation, groups } = geometry;
  const axis = (dim: 0 | 1): Axis => {
    const [s, d] = [stride[dim], dilation[dim]];
    const step = s / greatestCommonDivisor(s, d);
    const phases = Array.from({ length: Math.min(s, Math.max(image[dim], 1)) }, (_, phase): Phase => {
      const first =
        Array.from({ length: step }, (_, r) => r).find((r) => (phase + before[dim] - r * d) % s === 0) ?? kernel[dim];
      if (first >= kernel[dim]) return { first: 0, taps: 0, offset: 0 };
      return { first, taps: Math.ceil((kernel[dim] - first) / step), offset: (phase + before[dim] - first * d) / s };
    });
    return {
      source: positions[dim],
      target: image[dim],
      kernel: kernel[dim],
      stride: 1,
      dilation: -d / greatestCommonDivisor(s, d),
      step,
      phases,
      positions: Math.ceil(image[dim] / phases.length),
    };
  };
  return {
    batch,
    vertical: axis(0),
    horizontal: axis(1),
    groups,
    inner: outChannels / groups,
    columns: channels / groups,
    transposed: true,
  };
};

export const phasesOf = ({ vertical, horizontal }: Gather): number => vertical.phases.length * horizontal.phases.length;

/** Returns the number of target pixels of one phase, over all images. */
export const rowsOf = ({ batch, vertical, horizontal }: Gather): number =>
  batch * vertical.positions * horizontal.positions;

/** Returns the number of terms in the longest sum of any phase. */
export const innerLength = ({ vertical, horizontal, inner }: Gather): number =>
  Math.max(...vertical.phases.map(({ taps }) => taps)) * Math.max(...horizontal.phases.map(({ taps }) => taps)) * inner;
