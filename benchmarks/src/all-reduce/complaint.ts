/** Fields of an `execFile` error that the explanation uses. */
export interface Failure {
  readonly stderr?: string;
  readonly killed?: boolean;
  readonly code?: number | string | null;
}

/** First words of the line that explains an error, by language: Error [Code]: …, RuntimeError: …, rank 1: … */
const telling = /^(\w*Error\b|rank \d+:)/;
const folders = /(file:\/\/)?(\/[\w.@+-]+)+\//g;
const longest = 160;

/** Explains in one line of a page why a contestant failed: its own message without folders of this machine. */
export const complaintOf = ({ stderr = "", killed, code }: Failure, limitMilliseconds: number): string => {
  if (killed === true) return `did not end within ${limitMilliseconds / 1000} s`;
  const line = stderr.split("\n").find((text) => telling.test(text.trim()));
  if (line === undefined) return `ended with code ${code ?? "unknown"} and said nothing of an error`;
  return line.trim().replaceAll(folders, "").slice(0, longest);
};
