import { writeSync } from "node:fs";

/** First write error of each output stream, by stream name. */
const faults = new Map<string, NodeJS.ErrnoException>();
let changesExitCode = true;

/** Writes all bytes. Node reports a write to a file as complete even if only the first bytes were written. */
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

/** Returns an error message about output that could not be written. Undefined: no output was lost. */
const lostLine = (): string | undefined => {
  const [[name, { message }] = [undefined, { message: "" }]] = faults;
  return name === undefined
    ? undefined
    : `${name} could not be written (${message}), so the printed output is incomplete, but files written by the command are complete; free some space, or redirect the output elsewhere`;
};

/**
 * Keeps the process running if standard output or standard error cannot be written, for example on a full disk or after
 * the terminal was closed. Output that cannot be written is dropped, and later writes are attempted as usual. A command
 * that succeeded then exits with `failureCode` instead of 0, and writes one line to standard error if possible. A pipe
 * closed by its reader, such as `head`, is not an error.
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
      // only the exit code reports the lost output
    }
  });
};

/**
 * Keeps the exit code of this process unchanged if output is lost. For ranks, because launchers restart ranks that exit
 * with an error.
 */
export const keepExitCode = (): void => {
  changesExitCode = false;
};
