import { findBlas, openMeasured } from "./open-blas.ts";
import { isFaster, readTable } from "./shape-table.ts";
import { BlasError } from "./errors.ts";
import { knownLibraries } from "./system-libraries.ts";

/** State of the BLAS build on this machine. */
export type BlasSurvey =
  /** A build exists and works. Jobs use the build unless their `blas` option is `off`. */
  | {
      readonly state: "ready";
      readonly identity: string;
      readonly table: string;
      /** Whether several threads can multiply concurrently. */
      readonly concurrent: boolean;
      readonly measured: number;
      readonly faster: number;
    }
  /** A build exists but cannot be used. */
  | { readonly state: "broken"; readonly reason: string }
  /** No build exists. */
  | {
      readonly state: "not-built";
      /** Names of installed libraries that the loader's cache contains. */
      readonly libraries: readonly string[];
    };

/** Finds the `buildBlas` build on this machine, and checks that the build works. */
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
