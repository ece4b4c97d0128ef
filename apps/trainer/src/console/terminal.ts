import { visibleText } from "@skein/tensor-core/backend";

/**
 * Writes text for people, or JSON, to stdout. Names of files, classes and servers may contain terminal control
 * characters: these are escaped as in JSON, so that JSON keeps its meaning.
 */
export const writeStdout = (text: string): void => void process.stdout.write(visibleText(text));

/** Writes text to stderr, escaped as by `writeStdout`. */
export const writeStderr = (text: string): void => void process.stderr.write(visibleText(text));
