// Lists the operators that take the most time when all values of the conformance table are checked once on the
// reference backend. Run: node bench/conformance.bench.ts
import { referenceBackend } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { measure, printMeasurement, summarize } from "@skein/measuring";
import { checkValues, conformanceCases } from "../src/index.ts";

const backend = referenceBackend();
const results = [];
for (const op of Object.keys(operators)) {
  const rows = conformanceCases.filter((row) => row.op === op);
  const check = async (): Promise<void> => {
    for (const row of rows) await checkValues(row, backend);
  };
  if (rows.length > 0)
    results.push({ name: `${op}, ${rows.length} rows`, measurement: await measure(check, { samples: 3 }) });
}
results.sort((a, b) => b.measurement.median - a.measurement.median);
for (const { name, measurement } of results.slice(0, 12)) printMeasurement(name, measurement);
const medians = results.map(({ measurement }) => measurement.median);
process.stdout.write(
  `${results.length} operators, median ${summarize(medians).median.toFixed(1)} ms, total ${medians.reduce((sum, one) => sum + one, 0).toFixed(0)} ms\n`,
);
