/**
 * A curve of any length in bounded memory. Each point is the mean of `stride` values. When the maximum number of points
 * is reached, neighboring points are merged and the stride doubles. Amortized cost per value: constant.
 */
export class ThinnedSeries {
  /** Position (`x`) of the last value in each point. */
  readonly xs: number[] = [];
  readonly ys: number[] = [];
  private readonly capacity: number;
  private stride = 1;
  private pendingSum = 0;
  private pendingCount = 0;

  /**
   * Creates an empty curve.
   *
   * @param capacity Maximum number of points, even.
   */
  constructor(capacity: number) {
    this.capacity = capacity;
  }

  push(x: number, y: number): void {
    this.pendingSum += y;
    this.pendingCount++;
    if (this.pendingCount < this.stride) return;
    this.xs.push(x);
    this.ys.push(this.pendingSum / this.pendingCount);
    this.pendingSum = 0;
    this.pendingCount = 0;
    if (this.xs.length === this.capacity) this.halve();
  }

  private halve(): void {
    const half = this.capacity / 2;
    for (let i = 0; i < half; i++) {
      this.xs[i] = this.xs[2 * i + 1]!;
      this.ys[i] = (this.ys[2 * i]! + this.ys[2 * i + 1]!) / 2;
    }
    this.xs.length = half;
    this.ys.length = half;
    this.stride *= 2;
  }
}
