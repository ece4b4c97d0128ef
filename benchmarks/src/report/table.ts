import { significant } from "@skein/measuring";
import { alignColumns } from "./align-columns.ts";
import type { Row } from "./row.ts";

const measured = (value: number | null, spread: number | undefined, samples: number | undefined): string => {
  if (value === null) return "–";
  return spread === undefined ? significant(value) : `${significant(value)} ± ${significant(spread)} (${samples})`;
};

const header = ["benchmark", "unit", "ours", "peer", "peer's", "ratio", "wanted", "note"];

const cells = (row: Row): string[] => [
  row.benchmark,
  row.unit,
  measured(row.ours, row.oursSpread, row.oursSamples),
  row.peer,
  measured(row.peerValue, row.peerSpread, row.peerSamples),
  row.ratio === null ? "–" : row.ratio.toFixed(2),
  row.target === undefined ? "" : `≥ ${row.target}`,
  row.note ?? "",
];

/** Formats rows as a Markdown table with aligned columns: median ± median absolute deviation (samples). */
export const formatTable = (rows: readonly Row[]): string => alignColumns([header, ...rows.map(cells)]);

/** Returns one sentence for each row that misses its target or has no measurement. */
export const shortfalls = (rows: readonly Row[]): string[] =>
  rows.flatMap(({ benchmark, peer, ratio, target, note }) => {
    if (target === undefined) return [];
    if (ratio === null)
      return [`${benchmark} beside ${peer}: not measured, wanted ${target}${note === undefined ? "" : ` (${note})`}.`];
    return ratio < target ? [`${benchmark} beside ${peer}: ${ratio.toFixed(2)}, wanted ${target}.`] : [];
  });
