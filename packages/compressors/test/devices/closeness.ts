import type { NdArray } from "@skein/tensor-core";
import { greatest } from "../laws/law.ts";
import type { Row } from "../rows/row.ts";
import type { Stepped } from "../stepper.ts";
import type { RankStep } from "./compiled-step.ts";

/**
 * How far a step on a device may be from the reference, whose every operation is rounded to f32 from f64: a device adds
 * in another order, rounds a product and a sum together, and divides to a few units of the last place.
 */
interface Closeness {
  /** Of any value, relative to the greatest of its tensor on all ranks. 0: to the bit. */
  readonly values: number;
  /**
   * Rounding may decide which entries travel: those whose magnitude is that of the least that travels, to this much,
   * relative to the greatest. Never by default.
   */
  readonly entries?: number;
  /**
   * Or on which of two neighbouring levels one value in a thousand lies (in shorter tensors none): the distance of
   * levels, relative to the greatest. Never by default.
   */
  readonly level?: number;
}

/** Entries are compared, moved and added: nothing of it depends on the device. */
const exact: Closeness = { values: 0 };

// The errors seen were a sixth of these: up to 6e-7.
const rounded: Closeness = { values: 4e-6 };

/** By name of row; all others are exact. */
const closenessOf: Readonly<Record<string, Closeness>> = {
  // The threshold comes of a mean and a deviation.
  "gaussian-k": { values: 0, entries: 1e-5 },
  "gaussian-k with error feedback": { values: 0, entries: 1e-5 },
  // The levels lie around a mean; of those on the last level the first travel.
  "ms-top-k": { values: 0, entries: 2 ** -10 },
  "ms-top-k with error feedback": { values: 0, entries: 2 ** -10 },
  // The velocity is a product and a sum.
  dgc: { ...rounded, entries: 1e-5 },
  "scaled-sign": rounded,
  "scaled-sign per tensor": rounded,
  "one-bit": rounded,
  // Levels are √b/s apart where one entry of a block of b makes up its norm.
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

/** Names in the table above, to be looked for among the rows. */
export const namesWithTolerance: readonly string[] = Object.keys(closenessOf);

const differing = (actual: ArrayLike<number>, wanted: ArrayLike<number>, tolerance: number): number[] => {
  const places: number[] = [];
  for (let i = 0; i < wanted.length; i++) {
    const [a, w] = [actual[i]!, wanted[i]!];
    if (a !== w && !(Math.abs(a - w) <= tolerance) && !(Number.isNaN(a) && Number.isNaN(w))) places.push(i);
  }
  return places;
};

const leastOf = (values: ArrayLike<number>): number => {
  let least = Infinity;
  for (let i = 0; i < values.length; i++) if (values[i] !== 0) least = Math.min(least, Math.abs(values[i]!));
  return least;
};

/** Of a row in a world of so many ranks. The reference rounds a sum over ranks once, a device after every rank. */
const closenessIn = (row: Row, numRanks: number): Closeness => {
  const own = closenessOf[row.name] ?? exact;
  return numRanks > 2 ? { ...own, values: Math.max(own.values, 1e-6) } : own;
};

/** Places where rounding decided otherwise than in the reference. @throws Error where it was not rounding. */
const otherChoices = (
  { values, entries, level }: Closeness,
  actual: ArrayLike<number>,
  wanted: ArrayLike<number>,
  most: number,
): number[] => {
  const places = differing(actual, wanted, values * most);
  const least = leastOf(wanted);
  for (const i of places) {
    const [a, w] = [actual[i]!, wanted[i]!];
    const isEntry =
      entries !== undefined && (a === 0) !== (w === 0) && Math.abs(Math.abs(a + w) - least) <= entries * most;
    const isLevel =
      level !== undefined && places.length <= wanted.length / 1000 && Math.abs(a - w) <= level * most * 1.00001;
    if (!isEntry && !isLevel)
      throw new Error(`element ${i} of what was sent is ${a}, not ${w} (${places.length} differ; greatest ${most})`);
  }
  return places;
};

/** One tensor of all ranks, but for some places. */
const expectSame = (
  actual: readonly NdArray[],
  wanted: readonly ArrayLike<number>[],
  relative: number,
  but: readonly number[],
  what: string,
): void => {
  const most = greatest(...wanted);
  actual.forEach((array, rank) => {
    const own = array.toNumbers();
    if (own.length !== wanted[rank]!.length)
      throw new Error(`${what}: ${own.length} elements, not ${wanted[rank]!.length}`);
    const i = differing(own, wanted[rank]!, relative * most).find((place) => !but.includes(place));
    if (i !== undefined)
      throw new Error(`${what}: element ${i} on rank ${rank} is ${own[i]}, not ${wanted[rank]![i]} (greatest ${most})`);
  });
};

const expectStateWithin = (
  values: number,
  actual: readonly RankStep["state"][],
  wanted: Stepped["state"],
  but: readonly number[],
): void => {
  actual.forEach(({ length }, rank) => {
    if (length !== wanted[rank]!.length) throw new Error(`${length} leaves of state, not ${wanted[rank]!.length}`);
  });
  wanted[0]!.forEach(({ spec }, leaf) =>
    expectSame(
      actual.map((leaves) => leaves[leaf]!),
      wanted.map((leaves) => leaves[leaf]!.data),
      spec.dtype === "f32" ? values : 0,
      but,
      `leaf ${leaf} of the state`,
    ),
  );
};

/** @param actual of each rank. @throws Error unless first states on devices are those of the reference. */
export const expectSameState = (row: Row, actual: readonly RankStep["state"][], wanted: Stepped["state"]): void =>
  expectStateWithin(closenessIn(row, 1).values, actual, wanted, []);

/**
 * @param actual of each rank.
 * @throws Error unless a step on devices is that of the reference, as near as the row allows.
 */
export const expectSameStep = (row: Row, actual: readonly RankStep[], wanted: Stepped): void => {
  const closeness = closenessIn(row, actual.length);
  const most = greatest(...wanted.sent);
  const but = actual.flatMap(({ sent }, rank) => otherChoices(closeness, sent.toNumbers(), wanted.sent[rank]!, most));
  expectSame(
    actual.map(({ mean }) => mean),
    wanted.mean,
    closeness.values,
    but,
    "the mean",
  );
  expectStateWithin(
    closeness.values,
    actual.map(({ state }) => state),
    wanted.state,
    but,
  );
};
