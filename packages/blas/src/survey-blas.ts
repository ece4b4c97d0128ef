import { findBlas, openMeasured } from "./open-blas.ts";
import { isFaster, readTable } from "./shape-table.ts";
import { BlasError } from "./errors.ts";
import { knownLibraries } from "./system-libraries.ts";

/** What there is of a BLAS on this machine. */
export type BlasSurvey =
  /** Built, and used by jobs that do not say `blas: off`. */
  | {
      readonly state: "ready";
      readonly identity: string;
      readonly table: string;
      /** Whether several threads may multiply at once. */
      readonly concurrent: boolean;
      readonly measured: number;
      readonly faster: number;
    }
  /** Built, but not to be used any more. */
  | { readonly state: "broken"; readonly reason: string }
  /** Not built. */
  | {
      readonly state: "not-built";
      /** Names of those that are installed, as far as the loader's cache tells. */
      readonly libraries: readonly string[];
    };

/** Look for what `buildBlas` has left here, and whether it works. */
export const surveyBlas = (environment: NodeJS.ProcessEnv = process.env): BlasSurvey => {
  try {
    const place = findBlas(environment);
    if (place === undefined) return { state: "not-built", libraries: knownLibraries() };
    const table = readTable(place.table);
    const { identity, concurrent } = openMeasured(place, table);
    const { shapes } = table;
    return {
      state: "ready",
      identity,
      concurrent,
      table: place.table,
      measured: shapes.length,
      faster: shapes.filter(isFaster).length,
    };
  } catch (error) {
    if (!(error instanceof BlasError)) throw error;
    return { state: "broken", reason: error.message };
  }
};
