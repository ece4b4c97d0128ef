export { type Measurement, measure, type MeasureOptions } from "./measure.ts";
export { formatRate, measurementLine, printMeasurement, type Work } from "./print-measurement.ts";
export { median, medianAbsoluteDeviation, type Summary, summarize } from "./statistics.ts";
