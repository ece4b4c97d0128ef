import type { NdArray } from "@skein/tensor-core";
import { greatest } from "../laws/law.ts";
import type { Row } from "../rows/row.ts";
import type { Stepped } from "../stepper.ts";
import type { RankStep } from "./compiled-step.ts";

/**
 * Tolerances for comparing a step on a device with the reference backend, which rounds the result of every operation
 * from f64 to f32. A device adds in another order, fuses a product and a sum, and divides with an error of a few units
 * in the last place.
 */
interface Closeness {
  /** Maximum error of a value, relative to the largest magnitude in its tensor over all ranks. 0: bit-exact. */
  readonly values: number;
  /**
   * Relative tolerance for the selection of entries to send. If the magnitude of an entry differs from the smallest
   * sent magnitude by less than this tolerance, rounding may change whether the entry is sent. Default: 0.
   */
  readonly entries?: number;
  /**
   * Relative distance between adjacent levels. If present, rounding may move one value in a thousand (none in tensors
   * with fewer values) to an adjacent level. Absent: no value may move.
   */
  readonly level?: number;
}

/** Tolerance of rows that only compare, move and add entries, whose results do not depend on the device. */
const exact: Closeness = { values: 0 };

// Observed errors are a sixth of this tolerance: up to 6e-7.
const rounded: Closeness = { values: 4e-6 };

/** Tolerance by row name. Rows without a tolerance are compared bit by bit. */
const closenessOf: Readonly<Record<string, Closeness>> = {
  // The threshold is computed from a mean and a standard deviation.
  "gaussian-k": { values: 0, entries: 1e-5 },
  "gaussian-k with error feedback": { values: 0, entries: 1e-5 },
  // Levels are computed around a mean; on the last level, only the first entries are sent.
  "ms-top-k": { values: 0, entries: 2 ** -10 },
  "ms-top-k with error feedback": { values: 0, entries: 2 ** -10 },
  // The velocity is a product plus a sum.
  dgc: { ...rounded, entries: 1e-5 },
  "scaled-sign": rounded,
  "scaled-sign per tensor": rounded,
  "one-bit": rounded,
  // Levels are √b/s apart if a single entry of a block of b entries determines its norm.
  qsgd: { ...rounded, level: Math.sqrt(128) / 127 },
  "qsgd of 4 bits": { ...rounded, level: Math.sqrt(8) / 7 },
  "qsgd of 2 bits": { ...rounded, level: 2 },
  "tern-grad": { ...rounded, level: 1 },
  "tern-grad without clipping": { ...rounded, level: 1 },
  "eight-bit": { ...rounded, level: 1 / 127 },
  "eight-bit, stochastic": { ...rounded, level: 1 / 127 },
  agoq: { ...rounded, level: 2 / 127 },
  "power-sgd": rounded,
  "power-sgd with error feedback": rounded,
  "acp-sgd": rounded,
  "acp-sgd with error feedback": rounded,
  "ef21 with power-sgd": rounded,
  "chain of top-k and eight-bit": { ...rounded, level: 1 / 127 },
  "chain of top-k and eight-bit with error feedback": { ...rounded, level: 1 / 127 },
  "chain of random-k and stochastic eight-bit": { ...rounded, level: 1 / 127 },
  partition: { ...rounded, level: 1 / 127 },
  "partition with error feedback": rounded,
};

/** Row names with a tolerance. A test checks that each name is the name of a row. */
export const namesWithTolerance: readonly string[] = Object.keys(closenessOf);

const differing = (actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): number[] => {
  const places: number[] = [];
  for (let i = 0; i < expected.length; i++) {
    const [a, w] = [actual[i]!, expected[i]!];
    if (a !== w && !(Math.abs(a - w) <= tolerance) && !(Number.isNaN(a) && Number.isNaN(w))) places.push(i);
  }
  return places;
};

const minOf = (values: ArrayLike<number>): number => {
  let least = Infinity;
  for (let i = 0; i < values.length; i++) if (values[i] !== 0) least = Math.min(least, Math.abs(values[i]!));
  return least;
};

/**
 * Returns the tolerance of a row in a world of `numRanks` ranks. The reference backend rounds a sum over ranks one
 * time, and a device rounds after every rank.
 */
const closenessIn = (row: Row, numRanks: number): Closeness => {
  const own = closenessOf[row.name] ?? exact;
  return numRanks > 2 ? { ...own, values: Math.max(own.values, 1e-6) } : own;
};

/**
 * Returns the indices at which a device selected other entries than the reference, because of rounding. Throws if
 * rounding does not explain a difference.
 */
const otherChoices = (
  { values, entries, level }: Closeness,
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  most: number,
): number[] => {
  const places = differing(actual, expected, values * most);
  const least = minOf(expected);
  for (const i of places) {
    const [a, w] = [actual[i]!, expected[i]!];
    const isEntry =
      entries !== undefined && (a === 0) !== (w === 0) && Math.abs(Math.abs(a + w) - least) <= entries * most;
    const isLevel =
      level !== undefined && places.length <= expected.length / 1000 && Math.abs(a - w) <= level * most * 1.00001;
    if (!isEntry && !isLevel)
      throw new Error(`element ${i} of what was sent is ${a}, not ${w} (${places.length} differ; greatest ${most})`);
  }
  return places;
};

/** Throws if a tensor differs from the expected tensor on any rank, except at the indices `but`. */
const expectSame = (
  actual: readonly NdArray[],
  expected: readonly ArrayLike<number>[],
  relative: number,
  but: readonly number[],
  what: string,
): void => {
  const most = greatest(...expected);
  actual.forEach((array, rank) => {
    const own = array.toNumbers();
    if (own.length !== expected[rank]!.length)
      throw new Error(`${what}: ${own.length} elements, not ${expected[rank]!.length}`);
    const i = differing(own, expected[rank]!, relative * most).find((place) => !but.includes(place));
    if (i !== undefined)
      throw new Error(
        `${what}: element ${i} on rank ${rank} is ${own[i]}, not ${expected[rank]![i]} (greatest ${most})`,
      );
  });
};

const expectStateWithin = (
  values: number,
  actual: readonly RankStep["state"][],
  expected: Stepped["state"],
  but: readonly number[],
): void => {
  actual.forEach(({ length }, rank) => {
    if (length !== expected[rank]!.length) throw new Error(`${length} leaves of state, not ${expected[rank]!.length}`);
  });
  expected[0]!.forEach(({ spec }, leaf) =>
    expectSame(
      actual.map((leaves) => leaves[leaf]!),
      expected.map((leaves) => leaves[leaf]!.data),
      spec.dtype === "f32" ? values : 0,
      but,
      `leaf ${leaf} of the state`,
    ),
  );
};

/**
 * Throws unless the initial states on devices equal the initial states of the reference.
 *
 * @param actual states per rank.
 */
export const expectSameState = (row: Row, actual: readonly RankStep["state"][], expected: Stepped["state"]): void =>
  expectStateWithin(closenessIn(row, 1).values, actual, expected, []);

/**
 * Throws unless a step on devices equals the step of the reference backend, within the row's tolerance.
 *
 * @param actual results per rank.
 */
export const expectSameStep = (row: Row, actual: readonly RankStep[], expected: Stepped): void => {
  const closeness = closenessIn(row, actual.length);
  const most = greatest(...expected.sent);
  const but = actual.flatMap(({ sent }, rank) => otherChoices(closeness, sent.toNumbers(), expected.sent[rank]!, most));
  expectSame(
    actual.map(({ mean }) => mean),
    expected.mean,
    closeness.values,
    but,
    "the mean",
  );
  expectStateWithin(
    closeness.values,
    actual.map(({ state }) => state),
    expected.state,
    but,
  );
};
