import { execFile } from "node:child_process";

/** Time limit of a syntax check in milliseconds. The check only parses files and runs no code. */
const timeoutMilliseconds = 10_000;

const locationIn = (file: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile(process.execPath, ["--check", file], { timeout: timeoutMilliseconds }, (_, __, stderr) => {
      const [first] = stderr.split("\n");
      resolve(first?.startsWith(`${file}:`) === true ? first : undefined);
    });
  });

/**
 * Finds the location of the first syntax error in some files. Node reports the location only if the error ends a
 * process, so a separate process checks the files.
 *
 * @returns file and line, such as `/mine/model.js:3`; undefined if Node reports no location.
 */
export const syntaxErrorLocation = async (files: readonly string[]): Promise<string | undefined> => {
  for (const file of files) {
    const location = await locationIn(file);
    if (location !== undefined) return location;
  }
  return undefined;
};
