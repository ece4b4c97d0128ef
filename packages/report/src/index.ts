export { flameChart, type FlameNode } from "./charts/flame-chart.ts";
export { histogramChart, type HistogramChartOptions } from "./charts/histogram-chart.ts";
export type { Interval } from "./charts/interval-rows.ts";
export { type Lifetime, memoryChart, type MemoryRows } from "./charts/memory-chart.ts";
export { type Roof, rooflineChart, type RooflinePoint } from "./charts/roofline-chart.ts";
export { pixel } from "./charts/svg.ts";
export { type Segment, stackedBar, type StackedBarOptions } from "./charts/stacked-bar.ts";
export { timelineChart, type TimelineSpan, type TimelineTrack } from "./charts/timeline-chart.ts";
export { clientScript } from "./client/client-script.ts";
export { showTips } from "./client/show-tips.ts";
export { zoomTimeline } from "./client/zoom-timeline.ts";
export { csvOf, type ReportCsv } from "./csv.ts";
export { linearTicks, logPosition, tickTexts } from "./charts/ticks.ts";
export { escapeText } from "./html.ts";
export { parseReport, spanArgs } from "./parse-report.ts";
export type {
  Advice,
  CollectiveRow,
  MemoryBlock,
  MemoryProfile,
  OperatorRow,
  OutsideRow,
  ProfileReport,
  Times,
} from "./profile-report.ts";
export { outsideNames } from "./phases.ts";
export {
  bytesText,
  byteUnits,
  digitsText,
  millisecondsText,
  quantityText,
  rateText,
  secondsText,
  shareText,
  timeUnits,
} from "./quantities.ts";
export { reportPage } from "./report-page.ts";
export { runPage } from "./run-page.ts";
export { sweepPage, type SweepReport } from "./sweep-page.ts";
export type {
  ExpertLoads,
  ExpertMoves,
  Histogram,
  ParameterHistograms,
  RunReport,
  StepHistograms,
  StepValue,
} from "./run-report.ts";
export { describeHistogram, type HistogramKind } from "./sections/histograms.ts";
export { styles, timelineStyles } from "./styles.ts";
export { printable } from "./terminal/display-width.ts";
export { terminalReport, type TerminalReportOptions } from "./terminal/terminal-report.ts";
export { type TextColumn, textTable } from "./terminal/text-table.ts";
export { selectRanks } from "./sections/charts.ts";
export { timelineFigure, timelineHelp } from "./sections/timeline-figure.ts";
export { rankTracks } from "./rank-tracks.ts";
export { type Kind, schemes } from "./tokens.ts";
export { alignClocks } from "./trace/align-clocks.ts";
export { parseTrace, type ReadTrace, type TraceCut } from "./trace/parse-trace.ts";
export {
  type RankStep,
  secondsByRank,
  secondsOf,
  shiftSpans,
  type SpanSum,
  stepsOf,
  sumsByName,
  timelineOf,
  worldSeconds,
  type WorldStep,
  worldSteps,
} from "./trace/steps.ts";
export { traceError } from "./trace/trace-error.ts";
export { type TraceFacts, traceFacts } from "./trace/trace-event.ts";
