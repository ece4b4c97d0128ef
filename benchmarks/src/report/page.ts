import { arch, cpus, platform, release, totalmem } from "node:os";
import type { Row } from "./row.ts";
import { formatTable, shortfalls } from "./table.ts";

/** Describes the machine that ran the measurements. */
export const machine = (): string => {
  const all = cpus();
  return `${all[0]?.model.trim() ?? "unknown processor"}, ${all.length} cores seen, ${(totalmem() / 2 ** 30).toFixed(0)} GiB memory, ${platform()} ${release()} ${arch()}, Node ${process.version}`;
};

export interface PageOptions {
  readonly title: string;
  readonly date: string;
  readonly command: string;
  readonly rows: readonly Row[];
  readonly versions: Readonly<Record<string, string>>;
  readonly seconds: number;
  /** Titles of the plots, and paths of their files relative to the page. Default: no plots. */
  readonly plots?: readonly { readonly title: string; readonly file: string }[];
}

/** Formats a dated page: the measurements, the machine, the command, and the rows that missed their target. */
export const formatPage = ({ title, date, command, rows, versions, seconds, plots = [] }: PageOptions): string => {
  const missed = shortfalls(rows);
  return `# ${title}, ${date}

Command: \`${command}\` (${seconds.toFixed(0)} s, one run on one machine).
Machine: ${machine()}.
Versions: ${Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ")}.

${formatTable(rows)}
${plots.map(({ title, file }) => `\n![${title}](./${file})\n`).join("")}
Values are medians ± median absolute deviation (samples). A ratio above 1 means that ours is better. Every contestant is a process or a page of
its own, with one computing thread on the CPU for each rank, starts from the same numbers, and is timed only after its own were checked: products
against an f64 product, losses of the first steps against one another, kernels against the CPU backend, all-reduces against the closed form of their
sums, codecs by what they restore. Rounds alternate between contestants; one computes while the others wait.
Kernels are set beside their ceiling, what a plain copy or multiply-add kernel reaches on the same adapter in the same run.

## What fell short

${missed.length === 0 ? "Nothing that was asked for." : missed.map((line) => `- ${line}`).join("\n")}
`;
};
