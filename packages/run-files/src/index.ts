export { maxTraceBytes } from "./files/trace-bytes.ts";
export { leafText, leafValues } from "./readers/leaf-values.ts";
export { MetricTable, Rows } from "./readers/metric-table.ts";
