import type { ConformanceCase } from "../conformance-case.ts";

/** All rows; one file of rows per operator family. */
export const conformanceCases: readonly ConformanceCase[] = [];
