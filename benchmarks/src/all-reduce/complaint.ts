/** Fields of an `execFile` error that the explanation uses. */
export interface Failure {
  readonly stderr?: string;
  readonly killed?: boolean;
  readonly code?: number | string | null;
}

/**
 * Matches the start of the line with an error's message: `Error [Code]: …` of Node.js, `RuntimeError: …` of Python,
 * `rank 1: …` of our C programs.
 */
const telling = /^(\w*Error\b|rank \d+:)/;
const folders = /(file:\/\/)?(\/[\w.@+-]+)+\//g;
const longest = 160;

/** Explains on one line why an implementation failed: its error message without this machine's folder paths. */
export const complaintOf = ({ stderr = "", killed, code }: Failure, limitMilliseconds: number): string => {
  if (killed === true) return `did not end within ${limitMilliseconds / 1000} s`;
  const line = stderr.split("\n").find((text) => telling.test(text.trim()));
  if (line === undefined) return `ended with code ${code ?? "unknown"} and said nothing of an error`;
  return line.trim().replaceAll(folders, "").slice(0, longest);
};
