/** Names of quantities of one kind of line; what has more is no run of anybody's. */
const mostColumns = 4096;
const longestName = 200;
/** Default maximum number of rows of a type: 10 MiB of `step` lines with 16 quantities. */
const defaultMaxRows = 2 ** 17;

const grown = <A extends Float64Array | Float32Array>(array: A, length: number): A => {
  if (length <= array.length) return array;
  const size = Math.max(64, length, 2 * array.length);
  const larger = array instanceof Float64Array ? new Float64Array(size) : new Float32Array(size);
  if (larger instanceof Float32Array) larger.fill(Number.NaN);
  larger.set(array);
  return larger as A;
};

/** Rows of one type of line, by column: what `metrics.jsonl` holds of `step` lines, say. Steps never fall. */
export class Rows {
  length = 0;
  /** Steps done, by row. */
  steps: Float64Array = new Float64Array(0);
  /** Seconds of training up to the end of that step, by row: the sum of `seconds` of the step lines before. */
  times: Float64Array = new Float64Array(0);
  /** By name and row; NaN where a line has none. Arrays are longer than there are rows. */
  readonly columns: Map<string, Float32Array> = new Map();
  /** Quantities that were left out, as there are too many or their names are too long. */
  refused = 0;

  add(step: number, time: number, quantities: Iterable<readonly [name: string, value: number]>): void {
    const row = this.length++;
    this.steps = grown(this.steps, this.length);
    this.times = grown(this.times, this.length);
    this.steps[row] = step;
    this.times[row] = time;
    for (const [name, value] of quantities) {
      let column = this.columns.get(name);
      if (column === undefined) {
        if (this.columns.size >= mostColumns || name.length > longestName) {
          this.refused++;
          continue;
        }
        column = new Float32Array(0);
      }
      if (column.length < this.length) {
        column = grown(column, this.length);
        this.columns.set(name, column);
      }
      column[row] = value;
    }
  }

  /** Rows of another table, behind those that are here; each array as long as there are new rows, or longer. */
  append(steps: Float64Array, times: Float64Array, columns: ReadonlyMap<string, Float32Array>): void {
    const from = this.length;
    this.length += steps.length;
    this.steps = grown(this.steps, this.length);
    this.times = grown(this.times, this.length);
    this.steps.set(steps, from);
    this.times.set(times, from);
    for (const [name, values] of columns) {
      const column = grown(this.columns.get(name) ?? new Float32Array(0), this.length);
      column.set(values.subarray(0, steps.length), from);
      this.columns.set(name, column);
    }
  }

  /** Forget rows from `step` on. */
  dropFrom(step: number): void {
    let row = this.length;
    while (row > 0 && this.steps[row - 1]! >= step) row--;
    for (const column of this.columns.values()) column.fill(Number.NaN, row);
    this.length = row;
  }

  /** Drop every second row, and keep the last. Memory stays for the rows to come. */
  thin(): void {
    const first = (this.length + 1) % 2;
    const count = (this.length - first + 1) >> 1;
    const compact = (array: Float64Array | Float32Array): void => {
      for (let row = 0; row < count; row++) array[row] = array[first + 2 * row] ?? Number.NaN;
    };
    compact(this.steps);
    compact(this.times);
    for (const column of this.columns.values()) {
      compact(column);
      column.fill(Number.NaN, count); // a line that lacks the quantity has no number
    }
    this.length = count;
  }

  /** The value of a row; NaN where it has none. */
  value(name: string, row: number): number {
    return this.columns.get(name)?.[row] ?? Number.NaN;
  }

  /** The last row in which a quantity is a number. */
  last(name: string): { readonly step: number; readonly value: number } | undefined {
    const column = this.columns.get(name);
    if (column === undefined) return undefined;
    for (let row = Math.min(this.length, column.length) - 1; row >= 0; row--)
      if (Number.isFinite(column[row])) return { step: this.steps[row]!, value: column[row]! };
    return undefined;
  }
}

/**
 * What is known of a run's numbers, by type of line. When a type has more rows than `maxRows`, every second one is
 * dropped: the memory of a long run is bounded, and the older its rows are, the fewer are kept.
 */
export class MetricTable {
  readonly byType: Map<string, Rows> = new Map();
  /** Lines that are no object with a type and a step. */
  skippedLines = 0;
  /** Grows whenever rows that were there are gone: who has a copy begins anew. */
  generation = 0;
  private readonly maxRows: number;

  constructor(maxRows: number = defaultMaxRows) {
    this.maxRows = maxRows;
  }

  /** A line of the file, without its end. */
  takeLine(text: string): void {
    if (text.trim() === "") return;
    let line: unknown;
    try {
      line = JSON.parse(text);
    } catch {
      this.skippedLines++;
      return;
    }
    if (typeof line !== "object" || line === null || Array.isArray(line)) {
      this.skippedLines++;
      return;
    }
    const { type, step, ...quantities } = line as Readonly<Record<string, unknown>>;
    if (typeof type !== "string" || type.length > longestName || typeof step !== "number" || !Number.isFinite(step)) {
      this.skippedLines++;
      return;
    }
    const rows = this.rowsOf(type);
    if (rows.length > 0 && step < rows.steps[rows.length - 1]!) this.goBackTo(type, step);
    const { seconds } = quantities;
    const own = type === "step" && typeof seconds === "number" && seconds > 0 && Number.isFinite(seconds) ? seconds : 0;
    rows.add(step, this.trainedUpTo(step) + own, numbersOf(quantities));
    if (rows.length > this.maxRows) {
      rows.thin();
      this.generation++;
    }
  }

  /** A line that was too long to be read. */
  skipLine(): void {
    this.skippedLines++;
  }

  private rowsOf(type: string): Rows {
    const known = this.byType.get(type);
    if (known !== undefined) return known;
    const rows = new Rows();
    this.byType.set(type, rows);
    return rows;
  }

  /** Whoever writes a step before the last one has gone back; where it trains, all that came after is done again. */
  private goBackTo(type: string, step: number): void {
    this.generation++;
    const types = type === "step" ? [...this.byType.values()] : [this.rowsOf(type)];
    for (const rows of types) rows.dropFrom(step);
  }

  /** Seconds of training that the last step line tells of. */
  private trainedUpTo(step: number): number {
    const rows = this.byType.get("step");
    if (rows === undefined || rows.length === 0) return 0;
    let row = rows.length - 1;
    while (row > 0 && rows.steps[row]! > step) row--;
    return rows.times[row]!;
  }
}

const numbersOf = function* (
  quantities: Readonly<Record<string, unknown>>,
): Generator<readonly [name: string, value: number]> {
  for (const name in quantities) {
    const value = quantities[name];
    if (typeof value === "number") yield [name, Number.isFinite(value) ? value : Number.NaN];
  }
};
