export { byteLevelTokenizer } from "./byte-level-tokenizer.ts";
export { arrayStateScenarios, type Expect, type MeasuredBackend } from "./array-states.ts";
export { composedCases } from "./cases/composed.ts";
export { composedOperatorCases, sinh } from "./composed-operator.ts";
export { conformanceCases } from "./cases/table.ts";
export { assertClose, defaultTolerance, firstDifference, type Tolerance } from "./closeness.ts";
export {
  checkGradientRule,
  checkGradientValues,
  type CheckOptions,
  checkValues,
  inputElements,
} from "./conformance.ts";
export type { ConformanceCase } from "./conformance-case.ts";
export { examples } from "./examples.ts";
export { type RankLayout, runOnRanks, toReference } from "./run-on-ranks.ts";
export { groupedRows, productRows, rowCases } from "./row-cases.ts";
export { rowSlice } from "./row-slice.ts";
export { checkRows, rowRanges, type RowCase } from "./row-laws.ts";
export { normalArray, seeded, uniformArray } from "./seeded.ts";
export { spread } from "./spread.ts";
export { gradedSpectrum, symmetricArray, withSpectrum } from "./symmetric.ts";
