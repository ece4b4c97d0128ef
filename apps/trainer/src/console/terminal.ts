import { visibleText } from "@skein/tensor-core/backend";

/**
 * Write text for people, or JSON, to stdout. Names of files, classes and servers may hold what a terminal obeys: it is
 * written in letters, as JSON does, so that JSON keeps its meaning.
 */
export const writeStdout = (text: string): void => void process.stdout.write(visibleText(text));

/** The same to stderr. */
export const writeStderr = (text: string): void => void process.stderr.write(visibleText(text));
