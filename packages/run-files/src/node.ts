export { type BestSoFar, bestSoFarSchema } from "./files/best-so-far.ts";
export { type TraceFacts, traceEvents, writeChromeTrace } from "./files/chrome-trace.ts";
export {
  type EvaluatedOn,
  type EvaluationFigures,
  flatFigures,
  formatFigures,
  reservedNames,
} from "./files/evaluation-figures.ts";
export { EventStream } from "./files/event-stream.ts";
export { HistogramRequests, requestFile, requestHistograms, takeRequest } from "./files/histogram-request.ts";
export {
  countValues,
  emptyRange,
  histogramOf,
  type HistogramPart,
  joinCounts,
  jointRange,
  rangeOf,
  type ValueRange,
} from "./files/histogram.ts";
export { histogramsFile, HistogramsFile } from "./files/histograms-file.ts";
export { holdOutput } from "./files/hold-output.ts";
export { type MetricLine, readMetricLines } from "./files/metric-lines.ts";
export { type Measurement, MetricFiles, metricsFile, type MetricSink } from "./files/metrics.ts";
export { formatMoves, measurementsOf, type MovedLayer } from "./files/moved-layer.ts";
export { leaveMark, removeMark, removeMarks, requireMark } from "./files/output-mark.ts";
export { makeProgress, type Progress, type StepProgress } from "./files/progress.ts";
export { readHistograms, type ShownHistograms } from "./files/read-histograms.ts";
export { RoutingFile, routingFile, type RoutingJson } from "./files/routing-file.ts";
export type {
  CheckpointEvent,
  EndEvent,
  EvaluationEvent,
  RunEvent,
  StartEvent,
  StepEvent,
} from "./files/run-events.ts";
export { jobFile, provenanceFile, summaryFile } from "./files/run-file-names.ts";
export {
  type Excerpt,
  type JsonNumber,
  longestSide,
  type SampleImage,
  type SampleOutput,
  samplesFile,
  type SamplesLine,
  type StoredSample,
} from "./files/sample-lines.ts";
export { evaluatedBy, formatBytes, formatSeconds, formatSummary, type Summary } from "./files/summary.ts";
export { linkTraceIntoRun, traceFile } from "./files/trace-beside-run.ts";
export { maxWaiting, WaitingEvents } from "./files/waiting-events.ts";
export { originOf } from "./provenance/origin.ts";
export { changesFile, type Ended, Provenance } from "./provenance/provenance.ts";
export { readGit } from "./provenance/read-git.ts";
export { type SavedStart, savedStarts } from "./provenance/saved-starts.ts";
export { findRuns } from "./readers/find-runs.ts";
export { flatJob } from "./readers/flat-job.ts";
export { FolderSearch, type FoundRun } from "./readers/folder-search.ts";
export { MetricTail } from "./readers/metric-tail.ts";
export { type KnownRun, readRun, type RunReading } from "./readers/read-run.ts";
export { factsOf, type RunFacts, stateOf } from "./readers/run-facts.ts";
export { readRunFiles, type RunFiles } from "./readers/run-files.ts";
