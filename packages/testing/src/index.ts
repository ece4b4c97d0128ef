export { conformanceCases } from "./cases/table.ts";
export type { ConformanceCase } from "./conformance-case.ts";
export { normal, seeded, uniform } from "./seeded.ts";
