import { visibleText } from "@skein/tensor-core/backend";

/**
 * Writes text or JSON to stdout. Terminal control characters, which file or class names may contain, are escaped as in
 * JSON, so that JSON output stays valid.
 */
export const writeStdout = (text: string): void => void process.stdout.write(visibleText(text));

/** Writes text to stderr, with control characters escaped as in `writeStdout`. */
export const writeStderr = (text: string): void => void process.stderr.write(visibleText(text));
