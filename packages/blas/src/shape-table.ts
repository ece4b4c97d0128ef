import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Contraction, contractionOps } from "@skein/cpu-kernels";
import { z } from "zod";
import type { LibraryIdentity } from "./addon.ts";
import { BlasError } from "./errors.ts";

const size = z.int().min(1);
const microseconds = z.number().positive();

/** Times of one shape in WebAssembly and with the BLAS. */
export interface MeasuredShape extends Contraction {
  readonly wasmMicroseconds: number;
  readonly blasMicroseconds: number;
}

/** Measured times of shapes on one machine, used to choose the faster implementation. */
export interface ShapeTable {
  readonly format: "skein-blas-table";
  readonly version: 1;
  /** Identity that the library reported, and the name under which the loader finds the library. */
  readonly library: LibraryIdentity & { readonly name: string };
  readonly shapes: readonly MeasuredShape[];
  /**
   * Row granularity for splitting products: splits between rows at multiples of this number do not change results; see
   * `measureSliceRows`. Absent: unknown, so products are not split.
   */
  readonly sliceRows?: number | undefined;
}

const measuredShape: z.ZodType<MeasuredShape> = z.strictObject({
  op: z.enum(contractionOps),
  variant: z.string().max(16),
  rows: size,
  columns: size,
  inner: size,
  wasmMicroseconds: microseconds,
  blasMicroseconds: microseconds,
});

const text = z.string().min(1).max(4096);

const shapeTable: z.ZodType<ShapeTable> = z.strictObject({
  format: z.literal("skein-blas-table"),
  version: z.literal(1),
  library: z.strictObject({ name: text, family: text, version: text, core: z.string().max(256) }),
  shapes: z.array(measuredShape).min(1).max(100_000),
  sliceRows: size.max(4096).optional(),
});

/** Reads a table. Throws BlasError `blas-table` if the file is not a table of measured shapes. */
export const readTable = (file: string): ShapeTable => {
  const wrong = (reason: string, cause: unknown): BlasError =>
    new BlasError(
      "blas-table",
      `${file} is not a table of measured shapes: ${reason}; measure again with: skein-train blas build`,
      { cause },
    );
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw wrong((error as Error).message.split("\n")[0]!, error);
  }
  const { success, data, error } = shapeTable.safeParse(content);
  if (success) return data;
  const { path, message } = error.issues[0]!;
  throw wrong(`${path.join(".") || "the whole"}: ${message}`, error);
};

/**
 * Returns the digest of the measured shapes, which determine the decisions of `chooser`. The digest, together with the
 * library's name and version, identifies a table.
 */
export const tableDigest = ({ shapes }: ShapeTable): string =>
  createHash("sha256").update(JSON.stringify(shapes)).digest("hex").slice(0, 12);

/**
 * Minimum speedup for which the BLAS is chosen. Two measurements of the same implementation differ by smaller factors.
 */
const minGain = 1.05;

export const isFaster = ({ wasmMicroseconds, blasMicroseconds }: MeasuredShape): boolean =>
  wasmMicroseconds > minGain * blasMicroseconds;

/** Returns the distance between two shapes: the sum of the squared log2 ratios of their sizes. */
const distance = (shape: Contraction, other: Contraction): number =>
  Math.log2(shape.rows / other.rows) ** 2 +
  Math.log2(shape.columns / other.columns) ** 2 +
  Math.log2(shape.inner / other.inner) ** 2;

/**
 * Returns a function that decides whether the BLAS computes a contraction. The decision follows the nearest measured
 * shape of the same operator and variant. Ties are resolved in favor of the first shape in the table. WebAssembly
 * computes operators and variants that were not measured, and shapes with a size of 0. The decision depends only on the
 * table and the shape.
 */
export const chooser = ({ shapes }: ShapeTable): ((contraction: Contraction) => boolean) => {
  const kinds = new Map<string, MeasuredShape[]>();
  const kindOf = ({ op, variant }: Contraction): string => `${op} ${variant}`;
  for (const shape of shapes) {
    const known = kinds.get(kindOf(shape));
    if (known === undefined) kinds.set(kindOf(shape), [shape]);
    else known.push(shape);
  }
  return (contraction) => {
    const known = kinds.get(kindOf(contraction));
    if (known === undefined || contraction.rows * contraction.columns * contraction.inner === 0) return false;
    return isFaster(
      known.reduce((nearest, shape) =>
        distance(shape, contraction) < distance(nearest, contraction) ? shape : nearest,
      ),
    );
  };
};
