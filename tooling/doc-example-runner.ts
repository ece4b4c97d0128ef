import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatWithOptions } from "node:util";

/** Result of an example. The process of the example writes the result to standard output as a line of JSON. */
export interface ExampleResult {
  readonly index: number;
  /** Lines printed by the example with `console.log`. Arrays are formatted as `[1, 2]`. */
  readonly lines: readonly string[];
  /** Stack of the error thrown by the example. Absent: the example did not throw. */
  readonly error?: string;
}

/** Runs example `index` in an empty folder, and writes its result. */
export const runExample = async (
  index: number,
  example: (console: Pick<Console, "log">) => Promise<void>,
): Promise<void> => {
  const lines: string[] = [];
  const log = (...values: readonly unknown[]): void => {
    const text = formatWithOptions({ breakLength: Infinity, compact: true }, ...values);
    lines.push(...text.replaceAll("[ ", "[").replaceAll(" ]", "]").split("\n"));
  };
  let error: string | undefined;
  const [folder, before] = [mkdtempSync(join(tmpdir(), "skein-example-")), process.cwd()];
  process.chdir(folder);
  try {
    await example({ log });
  } catch (thrown) {
    error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  } finally {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  }
  const result: ExampleResult = { index, lines, ...(error !== undefined && { error }) };
  process.stdout.write(`${JSON.stringify(result)}\n`);
};
