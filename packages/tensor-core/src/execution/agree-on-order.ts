import type { Executable } from "./backend.ts";
import type { Communicator, Communicators } from "../communicator.ts";
import { CollectiveOrderError } from "../errors.ts";
import { spanned, type SpanSink } from "../span-sink.ts";
import { canonicalOrder, type RankCollectives } from "../passes/collective-order.ts";

/**
 * Computes a 64-bit digest of a text, in hexadecimal: two FNV-1a hashes with different initial values. For comparison
 * only; not cryptographic.
 */
export const digestOf = (text: string): string => {
  let [low, high] = [0x811c9dc5, 0xcbf29ce4];
  for (let i = 0; i < text.length; i++) {
    low = Math.imul(low ^ text.charCodeAt(i), 0x01000193);
    high = Math.imul(high ^ (low >>> 15) ^ text.charCodeAt(i), 0x85ebca6b);
  }
  return [low, high].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
};

/**
 * Prefix of the text that a failed rank sends instead of a digest. A digest contains only hexadecimal digits, so it
 * cannot have this prefix.
 */
const failureMark = "failed: ";

/**
 * Returns one of the communicators. Any of them suffices, because `exchangeTexts` of each communicator reaches all
 * ranks of the world.
 */
const anyGroup = (communicators: Communicators): Communicator | undefined => Object.values(communicators)[0];

/**
 * Reports to the ranks in `agreeOnOrder` that tracing or compiling failed on this rank. The other ranks then also throw
 * an error instead of waiting. Call only if all ranks are known to compile at this point.
 */
export const broadcastFailure = async (error: unknown, communicators: Communicators): Promise<void> => {
  const text = `${failureMark}${error instanceof Error ? error.message : String(error)}`;
  try {
    await anyGroup(communicators)?.exchangeTexts(text);
  } catch {
    // Ignored, so that the caller receives the original error even if the report fails.
  }
};

/**
 * Compiles a graph so that all ranks of a world start collectives in the same order. Ranks compare digests of their
 * start orders. If the digests are equal, the compiled graphs are used. If digests differ, ranks exchange their lists
 * of collectives, and each rank compiles again for the common order. Graphs may differ in their computations, but not
 * in the collectives of a group.
 *
 * All ranks of the world must call this function at the same position in their sequence of collectives. Cost: one small
 * all-gather if digests are equal; otherwise two small and one large all-gather.
 *
 * @throws CollectiveOrderError on all ranks if collectives differ, if no common order exists, or if a rank has failed
 * (see `broadcastFailure`).
 */
export const agreeOnOrder = (
  compile: (order?: readonly number[]) => Executable,
  communicators: Communicators,
  spanSink?: SpanSink,
): Executable | Promise<Executable> => {
  const executable = compile();
  const group = anyGroup(communicators);
  if (group === undefined) return executable;
  const span = { name: "agree on the order of collectives", track: "host" } as const;
  const agree = (): Promise<Executable> => agreeWithRanks(executable, compile, communicators, group);
  // In a world of one rank there is nothing to agree on, so no span is recorded. `agree` is called in any case, because
  // a rank that is alone in its groups may belong to a larger world.
  const isAlone = Object.values(communicators).every(({ worldSize }) => worldSize === 1);
  return isAlone ? agree() : spanned(spanSink, span, agree);
};

const agreeWithRanks = async (
  executable: Executable,
  compile: (order: readonly number[]) => Executable,
  communicators: Communicators,
  group: Communicator,
): Promise<Executable> => {
  const { collectives, order } = executable.collectives;
  let canonical: readonly number[] = order;
  try {
    // Include the trace position of each collective, to distinguish equal collectives.
    const starts = order.map((position) => `${position} ${collectives[position]!.what}`);
    const digests = await group.exchangeTexts(digestOf(starts.join("\n")));
    const failed = digests.findIndex((text) => text.startsWith(failureMark));
    if (failed >= 0)
      throw new CollectiveOrderError(
        `rank ${failed} could not compile its graph: ${digests[failed]!.slice(failureMark.length)}`,
        "all ranks of a world compile together; mend what that rank computes for its place",
      );
    if (digests.some((digest) => digest !== digests[0])) {
      const own: RankCollectives = {
        axes: Object.fromEntries(Object.entries(communicators).map(([axis, { members }]) => [axis, members])),
        collectives,
      };
      const texts = await group.exchangeTexts(JSON.stringify(own));
      canonical = canonicalOrder(texts.map((text) => JSON.parse(text) as RankCollectives))[group.members[group.rank]!]!;
    }
  } catch (error) {
    executable.release();
    throw error;
  }
  if (canonical.every((position, i) => position === order[i])) return executable;
  executable.release();
  return compile(canonical);
};
