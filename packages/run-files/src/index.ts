export { MetricTable, Rows } from "./readers/metric-table.ts";
