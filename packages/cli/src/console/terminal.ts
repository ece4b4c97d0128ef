import { visibleText } from "@skein/tensor-core/backend";

/**
 * Writes human-readable text or JSON to stdout. Names of files, classes and servers may contain terminal control
 * characters. These characters are escaped as in JSON, so that JSON keeps its meaning.
 */
export const writeStdout = (text: string): void => void process.stdout.write(visibleText(text));

/** Writes text to stderr, with control characters escaped as in `writeStdout`. */
export const writeStderr = (text: string): void => void process.stderr.write(visibleText(text));
