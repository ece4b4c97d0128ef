export { type Measurement, measure, type MeasureOptions } from "./measure.ts";
export { formatRate, measurementLine, printMeasurement, significant, type Work } from "./print-measurement.ts";
export { mean, median, medianAbsoluteDeviation, medianBy, type Summary, summarize } from "./statistics.ts";
