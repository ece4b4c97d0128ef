/** Maximum number of quantities per line type. Typical runs have fewer. */
const maxColumnsPerType = 4096;
/** Maximum number of quantities over all line types. */
const maxColumnsInTotal = 2 ** 14;
const longestName = 200;
/** Maximum number of line types. Each rank has one line type. */
const maxTypes = 512;
/**
 * Maximum number of times that the steps of a run may go back to an earlier step, as after a resume. Each time, all
 * columns are scanned.
 */
const maxReturns = 1000;
/** Default maximum number of rows per line type: 10 MiB of `step` lines with 16 quantities. */
const defaultMaxRows = 2 ** 17;
/** Default maximum number of values of a run, over all rows and columns of all line types: 32 MiB per run on a page. */
const defaultMaxValues = 2 ** 23;

type Numbers = Float64Array | Float32Array;

/** Copies the first `count` numbers into a new array of `length` numbers, and fills the remainder with NaN. */
const resized = <A extends Numbers>(array: A, length: number, count: number): A => {
  const other = (array instanceof Float64Array ? new Float64Array(length) : new Float32Array(length)) as A;
  other.set(array.subarray(0, count));
  return other.fill(Number.NaN, Math.min(count, array.length)) as A;
};

const grown = <A extends Numbers>(array: A, length: number): A =>
  length <= array.length ? array : resized(array, Math.max(64, length, 2 * array.length), array.length);

/** Rows of one line type of `metrics.jsonl`, such as `step`, stored by column. Steps never decrease. */
export class Rows {
  length = 0;
  /** Number of completed steps, by row. */
  steps: Float64Array = new Float64Array(0);
  /** Seconds of training up to the end of the row's step: sum of `seconds` over the step lines up to that step. */
  times: Float64Array = new Float64Array(0);
  /** Columns by quantity name; NaN if a line has no such quantity. Arrays may be longer than the number of rows. */
  readonly columns: Map<string, Float32Array> = new Map();
  /** Number of skipped values, because there are too many quantities or the name of a quantity is too long. */
  refused = 0;

  /** Size of a row in f32 numbers. The step and the time of the row are f64, so each counts twice. */
  get width(): number {
    return this.columns.size + 4;
  }

  /** Number of values in all columns, including missing values, which also need memory in a page. */
  get size(): number {
    return this.length * this.width;
  }

  /**
   * Adds a row.
   * @param maxColumns Maximum number of columns after the call. Quantities that would need more columns are skipped.
   */
  add(
    step: number,
    time: number,
    quantities: Iterable<readonly [name: string, value: number]>,
    maxColumns: number = maxColumnsPerType,
  ): void {
    const row = this.length++;
    this.steps = grown(this.steps, this.length);
    this.times = grown(this.times, this.length);
    this.steps[row] = step;
    this.times[row] = time;
    for (const [name, value] of quantities) {
      let column = this.columns.get(name);
      if (column === undefined) {
        if (this.columns.size >= maxColumns || name.length > longestName) {
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

  /** Appends rows of another table. Each array must be at least as long as the number of new rows. */
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

  /** Removes the rows of `step` and later steps. */
  dropFrom(step: number): void {
    const row = this.rowsBefore(step, false);
    for (const column of this.columns.values()) column.fill(Number.NaN, row, this.length);
    this.length = row;
    if (this.steps.length > Math.max(256, 4 * row)) this.replaceArrays((array) => resized(array, row, row));
  }

  /** Returns the number of rows before `step`, including rows of `step` itself if `isIncluded`. */
  rowsBefore(step: number, isIncluded: boolean): number {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const own = this.steps[middle]!;
      if (own < step || (isIncluded && own === step)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Removes every second row, but keeps the last row. Memory shrinks accordingly. */
  thin(): void {
    const first = (this.length + 1) % 2;
    const count = (this.length - first + 1) >> 1;
    this.replaceArrays((array) => {
      const own = Math.min(count, (array.length - first + 1) >> 1); // shorter if the last lines have no value
      for (let row = 0; row < own; row++) array[row] = array[first + 2 * row]!;
      return resized(array, own, own);
    });
    this.length = count;
  }

  private replaceArrays(replaced: <A extends Numbers>(array: A) => A): void {
    this.steps = replaced(this.steps);
    this.times = replaced(this.times);
    for (const [name, column] of this.columns) this.columns.set(name, replaced(column));
  }

  /** Returns a value of a row; NaN if the row has no such value. */
  value(name: string, row: number): number {
    return this.columns.get(name)?.[row] ?? Number.NaN;
  }

  /** Returns the last row in which a quantity is finite. Undefined: there is no such row. */
  last(name: string): { readonly step: number; readonly value: number } | undefined {
    const column = this.columns.get(name);
    if (column === undefined) return undefined;
    for (let row = Math.min(this.length, column.length) - 1; row >= 0; row--)
      if (Number.isFinite(column[row])) return { step: this.steps[row]!, value: column[row]! };
    return undefined;
  }
}

/**
 * Metric values of a run, by line type. If a line type has more than `maxRows` rows, or all line types together have
 * more than `maxValues` values, every second row of that line type, or of the line type with the most values, is
 * removed. This limits the memory of a run, and makes older rows sparser.
 */
export class MetricTable {
  readonly byType: Map<string, Rows> = new Map();
  /**
   * Number of skipped lines: lines that are not an object with a type and a step, lines beyond the maximum number of
   * line types, and lines that go back to an earlier step more often than the maximum.
   */
  skippedLines = 0;
  /** Version of the rows. Incremented when existing rows are removed; copies made from an older version are invalid. */
  generation = 0;
  private readonly maxRows: number;
  private readonly maxValues: number;
  /** Number of columns over all line types. */
  private columns = 0;
  /** Number of values over all line types. */
  private values = 0;
  /** Number of times that lines have gone back to an earlier step. */
  private returns = 0;

  constructor(maxRows: number = defaultMaxRows, maxValues: number = defaultMaxValues) {
    this.maxRows = maxRows;
    this.maxValues = maxValues;
  }

  /** Adds a line of the file, without its newline. */
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
    const quantities = line as Readonly<Record<string, unknown>>;
    const [type, step] = [valueOf(quantities, "type"), valueOf(quantities, "step")];
    if (typeof type !== "string" || type.length > longestName || typeof step !== "number" || !Number.isFinite(step)) {
      this.skippedLines++;
      return;
    }
    const rows = this.rowsOf(type);
    const goesBack = rows !== undefined && rows.length > 0 && step < rows.steps[rows.length - 1]!;
    if (rows === undefined || (goesBack && ++this.returns > maxReturns)) {
      this.skippedLines++;
      return;
    }
    if (goesBack) this.goBackTo(rows, type, step);
    const seconds = type === "step" ? valueOf(quantities, "seconds") : undefined;
    const taken = typeof seconds === "number" && seconds > 0 && Number.isFinite(seconds) ? seconds : 0;
    const columns = rows.columns.size;
    const maxColumns = Math.min(maxColumnsPerType, columns + maxColumnsInTotal - this.columns);
    this.makeRoom(rows, quantities, maxColumns);
    this.change(rows, () => rows.add(step, this.trainedUpTo(step) + taken, numbersOf(quantities), maxColumns));
    if (rows.length > this.maxRows) this.thin(rows);
  }

  /** Thins the table with the most values, repeatedly, until a line can be added to `rows`. */
  private makeRoom(rows: Rows, quantities: Readonly<Record<string, unknown>>, maxColumns: number): void {
    let width = rows.width;
    const most = width - rows.columns.size + maxColumns;
    for (const name of namesOf(quantities))
      if (width < most && !rows.columns.has(name) && name.length <= longestName) width++;
    const sizeOf = (one: Rows): number => one.length * (one === rows ? width : one.width);
    while (this.values - rows.size + sizeOf(rows) + width > this.maxValues) {
      const largest = [...this.byType.values()].reduce((one, other) => (sizeOf(other) > sizeOf(one) ? other : one));
      if (largest.length < 2) return;
      this.thin(largest);
    }
  }

  private thin(rows: Rows): void {
    this.change(rows, () => rows.thin());
    this.generation++;
  }

  /** Runs `act`, which changes `rows`, and updates the total numbers of columns and values. */
  private change(rows: Rows, act: () => void): void {
    this.values -= rows.size;
    this.columns -= rows.columns.size;
    act();
    this.values += rows.size;
    this.columns += rows.columns.size;
  }

  /** Counts a line that was too long to read. */
  skipLine(): void {
    this.skippedLines++;
  }

  /** Returns the rows of a line type, which are created if necessary. Undefined: there are too many line types. */
  private rowsOf(type: string): Rows | undefined {
    const known = this.byType.get(type);
    if (known !== undefined) return known;
    if (this.byType.size >= maxTypes) return undefined;
    const rows = new Rows();
    this.byType.set(type, rows);
    return rows;
  }

  /**
   * Handles a step number below the previous step number, which means that the run has returned to a checkpoint.
   * Removes later rows, because their steps are repeated: rows of all types if the line is a step line, otherwise rows
   * of the line's type.
   */
  private goBackTo(ofType: Rows, type: string, step: number): void {
    this.generation++;
    for (const rows of type === "step" ? this.byType.values() : [ofType]) this.change(rows, () => rows.dropFrom(step));
  }

  /** Returns the seconds of training up to the last step line at or before `step`. */
  private trainedUpTo(step: number): number {
    const rows = this.byType.get("step");
    if (rows === undefined || rows.length === 0) return 0;
    return rows.times[Math.max(0, rows.rowsBefore(step, true) - 1)]!;
  }
}

const valueOf = (line: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(line, name) ? line[name] : undefined;

/** Yields the names of the numeric fields in a line, except `step`. */
const namesOf = function* (line: Readonly<Record<string, unknown>>): Generator<string> {
  for (const name in line) if (name !== "step" && typeof line[name] === "number") yield name;
};

const numbersOf = function* (
  line: Readonly<Record<string, unknown>>,
): Generator<readonly [name: string, value: number]> {
  for (const name of namesOf(line)) {
    const value = line[name] as number;
    yield [name, Number.isFinite(value) ? value : Number.NaN];
  }
};
