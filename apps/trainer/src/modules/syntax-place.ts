import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

/** It parses files; where it does more, as of a module that waits while it is loaded, nobody wants to wait for it. */
const timeoutMilliseconds = 10_000;

/**
 * Where a module of a user's, or one that it imports, cannot be parsed or linked: Node tells the place of such a fault
 * only when it ends a process, so another one has to end by it.
 *
 * @param url of the file. @returns file and line, such as `/mine/model.js:3`; undefined where Node names none.
 */
export const syntaxPlace = (url: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const args = ["--input-type=module", "--eval", "await import(process.argv[1])", url];
    execFile(process.execPath, args, { timeout: timeoutMilliseconds }, (_, __, stderr) => {
      const [, file, line] = /^(file:\/\/\S+?):(\d+)$/m.exec(stderr) ?? [];
      resolve(file === undefined ? undefined : `${fileURLToPath(file)}:${line}`);
    });
  });
