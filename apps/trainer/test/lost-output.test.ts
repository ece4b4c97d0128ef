import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Ended, jobFolder, startWith } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

/** Runs the command line in a shell that redirects its output with `redirected`. */
const redirect = (redirected: string, ...args: string[]): Promise<Ended> =>
  startWith({ launcher: ["bash", "-c", redirected, "bash"] }, folder, ...args).ended;

const lost = (why: RegExp): RegExp =>
  new RegExp(
    `^standard output could not be written \\(${why.source}\\), so the printed output is incomplete, [^\\n]*\\n$`,
  );

const expectLost = async (_: string, redirected: string, why: RegExp): Promise<void> => {
  const { code, stderr } = await redirect(redirected, "schema");
  expect(stderr).toMatch(lost(why));
  expect(code).toBe(1);
};
test.each([["a file with room for a part", 'ulimit -f 1; exec "$@" > part', /EFBIG: [^\n]*/]])(
  "a failed print to %s ends a command with one line and code 1",
  expectLost,
);
test.each([
  ["a full device", 'exec "$@" > /dev/full', /ENOSPC: [^\n]*/],
  ["a descriptor that is open for reading alone", 'exec "$@" 1< /dev/null', /EBADF: [^\n]*/],
])("a failed print to %s ends a command with one line and code 1", { tags: "full" }, expectLost);

test("a run whose lines and results cannot be printed trains to its end, and its exit code reports it", async () => {
  const args = ["run", "job.yaml", "--output", "run", "--json"];
  expect(await redirect('exec "$@" > /dev/full 2> /dev/full', ...args)).toMatchObject({ code: 1, signal: null });
  const summary = JSON.parse(readFileSync(join(folder, "run/summary.json"), "utf8")) as { readonly checkpoint: string };
  expect(summary.checkpoint).toBe("run/checkpoints/step-00000030");
});
