export { conformanceCases } from "./cases/table.ts";
export { assertClose, defaultTolerance, firstDifference, type Tolerance } from "./closeness.ts";
export { checkGradientRule, checkGradientValues, checkValues, inputElements } from "./conformance.ts";
export type { ConformanceCase } from "./conformance-case.ts";
export { normal, seeded, uniform } from "./seeded.ts";
export { type Measurement, measure, type MeasureOptions } from "./measure.ts";
export { formatRate, measurementLine, printMeasurement, type Work } from "./print-measurement.ts";
export { median, medianAbsoluteDeviation, type Summary, summarize } from "./statistics.ts";
