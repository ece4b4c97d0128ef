import { execFile } from "node:child_process";

/** Nothing is run, only parsed. */
const timeoutMilliseconds = 10_000;

const placeIn = (file: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile(process.execPath, ["--check", file], { timeout: timeoutMilliseconds }, (_, __, stderr) => {
      const [first] = stderr.split("\n");
      resolve(first?.startsWith(`${file}:`) === true ? first : undefined);
    });
  });

/**
 * Where the first of some files that cannot be parsed is wrong. Node itself tells the place of such a fault only when
 * it ends a process, so another one looks.
 *
 * @returns file and line, such as `/mine/model.js:3`; undefined where Node names none.
 */
export const syntaxPlace = async (files: readonly string[]): Promise<string | undefined> => {
  for (const file of files) {
    const place = await placeIn(file);
    if (place !== undefined) return place;
  }
  return undefined;
};
