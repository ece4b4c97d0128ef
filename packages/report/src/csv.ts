import { outsideNames } from "./phases.ts";
import type { CollectiveRow, OperatorRow, OutsideRow, ProfileReport } from "./profile-report.ts";

/** Value of a CSV field; undefined is written as an empty field. */
type Field = string | number | undefined;

const fieldText = (field: Field): string => {
  const text = field === undefined ? "" : String(field);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const csvText = <T>(columns: readonly (readonly [name: string, of: (row: T) => Field])[], rows: readonly T[]): string =>
  [columns.map(([name]) => name), ...rows.map((row) => columns.map(([, of]) => of(row)))]
    .map((fields) => `${fields.map(fieldText).join(",")}\r\n`)
    .join("");

type CsvRow = Partial<Omit<OperatorRow, "phase">> &
  Pick<OperatorRow, "operator" | "scope" | "seconds" | "share"> & { readonly phase: string };

const operatorColumns: readonly (readonly [string, (row: CsvRow) => Field])[] = [
  ["operator", ({ operator }) => operator],
  ["scope", ({ scope }) => scope],
  ["phase", ({ phase }) => phase],
  ["calls", ({ calls }) => calls],
  ["seconds_median", ({ seconds }) => seconds.median],
  ["seconds_mad", ({ seconds }) => seconds.mad],
  ["seconds_n", ({ seconds }) => seconds.n],
  ["share", ({ share }) => share],
  ["flops", ({ flops }) => flops],
  ["bytes", ({ bytes }) => bytes],
  ["roofline_seconds", ({ rooflineSeconds }) => rooflineSeconds],
  ["bound_by", ({ boundBy }) => boundBy],
  ["predicted_seconds", ({ predictedSeconds }) => predictedSeconds],
];

/** Converts the time outside operators of one kind to a row, so that the shares of a file add up to 1. */
const outsideRowOf = ({ kind, seconds, share }: OutsideRow): CsvRow => ({
  operator: outsideNames[kind],
  scope: "",
  phase: "outside",
  seconds,
  share,
});

const collectiveColumns: readonly (readonly [string, (row: CollectiveRow) => Field])[] = [
  ["name", ({ name }) => name],
  ["kind", ({ kind }) => kind],
  ["axis", ({ axis }) => axis],
  ["algorithm", ({ algorithm }) => algorithm],
  ["bytes", ({ bytes }) => bytes],
  ["seconds_median", ({ seconds }) => seconds.median],
  ["seconds_mad", ({ seconds }) => seconds.mad],
  ["seconds_n", ({ seconds }) => seconds.n],
  ["exposed_seconds_median", ({ exposedSeconds }) => exposedSeconds.median],
  ["exposed_seconds_mad", ({ exposedSeconds }) => exposedSeconds.mad],
  ["exposed_seconds_n", ({ exposedSeconds }) => exposedSeconds.n],
  ["predicted_seconds", ({ predictedSeconds }) => predictedSeconds],
];

/** The tables of a report as CSV text, one file each. */
export interface ReportCsv {
  readonly operators: string;
  readonly collectives: string;
}

/**
 * Formats a report's operators and collectives as comma-separated values: a line of column names, followed by one line
 * per row. Times in seconds and sizes in bytes, with all digits; unknown values are empty. Time outside operators has
 * rows of the phase `outside`, so that shares add up to 1.
 *
 * Source: RFC 4180.
 */
export const csvOf = ({ operators, outside, collectives }: ProfileReport): ReportCsv => ({
  operators: csvText<CsvRow>(operatorColumns, [...operators, ...outside.map(outsideRowOf)]),
  collectives: csvText(collectiveColumns, collectives),
});
