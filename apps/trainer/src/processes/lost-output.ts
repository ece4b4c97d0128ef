import { writeSync } from "node:fs";

/** First error of each stream, by the name of the stream. */
const faults = new Map<string, NodeJS.ErrnoException>();
let changesExitCode = true;

/** Writes all bytes. Node treats a write to a file as complete even if only the first bytes fitted. */
const writeAll = (fd: number, bytes: Uint8Array): void => {
  for (let at = 0; at < bytes.length; ) {
    const written = writeSync(fd, bytes, at);
    if (written === 0) throw new Error("nothing was written");
    at += written;
  }
};

const writeFilesCompletely = (stream: NodeJS.WriteStream & { readonly fd: number }): void => {
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

/** Returns a line about lost output; undefined if no output was lost. */
const lostLine = (): string | undefined => {
  const [[name, { message }] = [undefined, { message: "" }]] = faults;
  return name === undefined
    ? undefined
    : `${name} could not be written (${message}), so the printed output is incomplete, but files written by the command are complete; free some space, or redirect the output elsewhere`;
};

/**
 * Continues if standard output or standard error cannot be written, such as on a full disk or after the terminal was
 * closed: output that does not fit is dropped, and each later write is tried again. A command that did its work then
 * ends with `failureCode` instead of 0, and one line on standard error if that can be written. A reader that has
 * exited, such as `head`, is not an error.
 */
export const surviveLostOutput = (failureCode: number): void => {
  for (const [name, stream] of [
    ["standard output", process.stdout],
    ["standard error", process.stderr],
  ] as const) {
    writeFilesCompletely(stream);
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

/** Leaves exit codes unchanged when output is lost, because launchers restart ranks that end with a failure. */
export const keepExitCode = (): void => {
  changesExitCode = false;
};
