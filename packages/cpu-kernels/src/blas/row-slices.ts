/** How the rows of a product are shared by threads, so that each thread's product has the bits of the whole. */
export class RowSlices {
  private readonly sliceRows: number;

  /** @param sliceRows see `Blas`. */
  constructor(sliceRows: number = Infinity) {
    this.sliceRows = sliceRows;
  }

  /** Into how many parts so many rows can be cut. */
  most(rows: number): number {
    return Math.max(1, Math.floor(rows / this.sliceRows));
  }

  /** First row of a part; that of the next part is its end. */
  begin(rows: number, part: number, parts: number): number {
    if (part === 0) return 0;
    return part === parts ? rows : Math.min(rows, this.sliceRows * Math.round((rows * part) / parts / this.sliceRows));
  }
}
