/**
 * Assigns the rows of a product to threads, so that the results are bitwise identical to the results of the whole
 * product.
 */
export class RowSlices {
  private readonly sliceRows: number;

  /**
   * Creates the row assignment for a BLAS.
   *
   * @param sliceRows Products can be split at multiples of this number of rows; see `Blas`. Default: products cannot be
   * split.
   */
  constructor(sliceRows: number = Infinity) {
    this.sliceRows = sliceRows;
  }

  /** Returns the maximum number of parts into which `rows` rows can be split. */
  most(rows: number): number {
    return Math.max(1, Math.floor(rows / this.sliceRows));
  }

  /** Returns the first row of a part. The end of a part is the first row of the next part. */
  begin(rows: number, part: number, parts: number): number {
    if (part === 0) return 0;
    return part === parts ? rows : Math.min(rows, this.sliceRows * Math.round((rows * part) / parts / this.sliceRows));
  }
}
