import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { contractionOps } from "@skein/cpu-kernels";
import { filesIn } from "../src/blas-cache.ts";
import { BlasError, type BlasFiles, buildBlas } from "../src/node.ts";
import { measuredKernels } from "../src/measured-kernels.ts";
import { type MeasuredShape, readTable, type ShapeTable } from "../src/shape-table.ts";

export interface Built {
  /** Name of the BLAS for test titles, with the reason if its tests are skipped. */
  readonly name: string;
  readonly missing: boolean;
  readonly folder: string;
  readonly files: BlasFiles;
}

/**
 * Builds the addon for the BLAS of this machine, or for a named library, with a table that prefers the BLAS for all
 * shapes. Returns the reason if there is no BLAS.
 */
export const buildForAll = async (library?: string): Promise<Built> => {
  const name = library ?? "the BLAS of this machine";
  const folder = mkdtempSync(join(tmpdir(), "skein-blas-"));
  try {
    const { addon, table } = await buildBlas({
      output: folder,
      kernels: measuredKernels.slice(0, 1),
      ...(library !== undefined && { library }),
    });
    const kinds = contractionOps.flatMap((op) =>
      (op === "matmul" ? ["nn", "nt", "tn", "tt"] : op.startsWith("attention") ? ["full", "causal"] : [""]).map(
        (variant) => ({
          op,
          variant,
        }),
      ),
    );
    const shapes = kinds.map(
      (kind): MeasuredShape => ({ ...kind, rows: 8, columns: 8, inner: 8, wasmMicroseconds: 2, blasMicroseconds: 1 }),
    );
    writeFileSync(table, JSON.stringify({ ...readTable(table), shapes } satisfies ShapeTable));
    return { name, missing: false, folder, files: { addon, table } };
  } catch (error) {
    if (!(error instanceof BlasError) || error.code !== "blas-missing") throw error;
    return { name: `${name} (skipped: ${error.message})`, missing: true, folder, files: filesIn(folder) };
  }
};
