import { writeSync } from "node:fs";

/** First fault of each stream, by its name. */
const faults = new Map<string, NodeJS.ErrnoException>();
let changesExitCode = true;

/** Node takes a write to a file for done if only the first bytes had room. */
const writeAll = (fd: number, bytes: Uint8Array): void => {
  for (let at = 0; at < bytes.length; ) {
    const written = writeSync(fd, bytes, at);
    if (written === 0) throw new Error("nothing was written");
    at += written;
  }
};

const writeFilesWhole = (stream: NodeJS.WriteStream & { readonly fd: number }): void => {
  if (stream.constructor.name !== "SyncWriteStream") return;
  stream._write = (chunk: Uint8Array, _, done) => {
    try {
      writeAll(stream.fd, chunk);
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  };
};

/** @returns a line on output that was lost; undefined if none was. */
const lostLine = (): string | undefined => {
  const [[name, { message }] = [undefined, { message: "" }]] = faults;
  return name === undefined
    ? undefined
    : `${name} could not be written (${message}), so what was printed is incomplete; files that were written are whole; make room there, or redirect it elsewhere`;
};

/**
 * Go on if standard output or standard error cannot be written, as on a full disk or after the terminal was closed:
 * what does not fit is dropped, and each later write is tried again. A command that did its work then ends with
 * `failureCode` instead of 0, and one line on standard error if that can be written. A reader that has gone, such as
 * `head`, is no fault.
 */
export const surviveLostOutput = (failureCode: number): void => {
  for (const [name, stream] of [
    ["standard output", process.stdout],
    ["standard error", process.stderr],
  ] as const) {
    writeFilesWhole(stream);
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && !faults.has(name)) faults.set(name, error);
    });
  }
  process.once("exit", (code) => {
    const line = lostLine();
    if (line === undefined || !changesExitCode) return;
    if (code === 0) process.exitCode = failureCode;
    try {
      writeSync(2, `${line}\n`);
    } catch {
      // the exit code alone reports the loss
    }
  });
};

/** Keep exit codes as they are: launchers start the ranks of a run again that end with a failure. */
export const keepExitCode = (): void => {
  changesExitCode = false;
};
