export type {
  Advice,
  CollectiveRow,
  MemoryBlock,
  MemoryProfile,
  OperatorRow,
  ProfileReport,
  Times,
} from "./profile-report.ts";
export { reportPage } from "./report-page.ts";
export { csvOf, type ReportCsv } from "./csv.ts";
export { parseReport } from "./parse-report.ts";
export { terminalReport, type TerminalReportOptions } from "./terminal/terminal-report.ts";
export { bytesText, rateText, secondsText } from "./quantities.ts";
export { type TextColumn, textTable } from "./terminal/text-table.ts";
