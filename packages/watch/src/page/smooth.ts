/** Exponential moving average with bias correction, so that averages do not start near 0. Values can be appended. */
export class Smoothed {
  values: Float32Array = new Float32Array(0);
  private done = 0;
  private sum = 0;
  private share = 0;
  private readonly weight: number;

  /** Creates an average without values. @param weight Weight of earlier values, in [0, 1). */
  constructor(weight: number) {
    this.weight = weight;
  }

  /** Returns the moving averages at the first `length` values. The average is NaN where the value is NaN. */
  of(line: Float32Array, length: number): Float32Array {
    if (this.values.length < length) {
      const larger = new Float32Array(Math.max(64, length, 2 * this.values.length)).fill(Number.NaN);
      larger.set(this.values.subarray(0, this.done));
      this.values = larger;
    }
    for (; this.done < length; this.done++) {
      const value = line[this.done] ?? Number.NaN;
      if (Number.isFinite(value)) {
        this.sum = this.weight * this.sum + (1 - this.weight) * value;
        this.share = this.weight * this.share + (1 - this.weight);
      }
      this.values[this.done] = Number.isFinite(value) ? this.sum / this.share : Number.NaN;
    }
    return this.values;
  }
}
