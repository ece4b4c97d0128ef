export { type LibraryFacts, noLocksAdvice } from "./addon.ts";
export type { BlasFiles } from "./blas-cache.ts";
export { buildBlas, type BuildBlasOptions, type BuiltBlas } from "./build-blas.ts";
export { BlasError } from "./errors.ts";
export { findBlas, openBlas } from "./open-blas.ts";
export { type BlasSurvey, surveyBlas } from "./survey-blas.ts";
