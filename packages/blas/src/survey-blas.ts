import { findBlas, openMeasured } from "./open-blas.ts";
import { isFaster, readTable } from "./shape-table.ts";
import { BlasError } from "./errors.ts";
import { knownLibraries } from "./system-libraries.ts";

/** State of the BLAS build on this machine. */
export type BlasSurvey =
  /** Built. Jobs use the build unless their `blas` option is `off`. */
  | {
      readonly state: "ready";
      readonly identity: string;
      readonly table: string;
      /** Whether several threads may multiply at once. */
      readonly concurrent: boolean;
      readonly measured: number;
      readonly faster: number;
    }
  /** Built, but no longer usable. */
  | { readonly state: "broken"; readonly reason: string }
  /** Not built. */
  | {
      readonly state: "not-built";
      /** Names of installed libraries, as far as the loader's cache knows them. */
      readonly libraries: readonly string[];
    };

/** Find the build of `buildBlas` on this machine, and check that the build works. */
export const surveyBlas = (environment: NodeJS.ProcessEnv = process.env): BlasSurvey => {
  try {
    const files = findBlas(environment);
    if (files === undefined) return { state: "not-built", libraries: knownLibraries() };
    const table = readTable(files.table);
    const { identity, concurrent } = openMeasured(files, table);
    const { shapes } = table;
    return {
      state: "ready",
      identity,
      concurrent,
      table: files.table,
      measured: shapes.length,
      faster: shapes.filter(isFaster).length,
    };
  } catch (error) {
    if (!(error instanceof BlasError)) throw error;
    return { state: "broken", reason: error.message };
  }
};
