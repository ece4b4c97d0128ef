import type { Executable } from "./backend.ts";
import type { Communicator, Communicators } from "../communicator.ts";
import { CollectiveOrderError } from "../errors.ts";
import { spanned, type SpanSink } from "../span-sink.ts";
import { canonicalOrder, type RankCollectives } from "../passes/collective-order.ts";

/**
 * 64 bits of a text, in hexadecimal: FNV-1a over two words, each begun differently. For comparing, not against forgers.
 */
export const digestOf = (text: string): string => {
  let [low, high] = [0x811c9dc5, 0xcbf29ce4];
  for (let i = 0; i < text.length; i++) {
    low = Math.imul(low ^ text.charCodeAt(i), 0x01000193);
    high = Math.imul(high ^ (low >>> 15) ^ text.charCodeAt(i), 0x85ebca6b);
  }
  return [low, high].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
};

/** What tells a failure from a digest, which has none but hexadecimal digits. */
const failureMark = "failed: ";

/** A group by which all ranks of the world hear each other, whatever part of it the group is. */
const anyGroup = (communicators: Communicators): Communicator | undefined => Object.values(communicators)[0];

/**
 * Tell the ranks that wait to agree that this one has no graph: it could not be traced or compiled for its place. They
 * then fail, too, instead of waiting for it. For where all ranks are known to compile.
 */
export const tellFailure = async (error: unknown, communicators: Communicators): Promise<void> => {
  const text = `${failureMark}${error instanceof Error ? error.message : String(error)}`;
  try {
    await anyGroup(communicators)?.exchangeTexts(text);
  } catch {
    // What made this rank fail is what its caller hears, whatever has become of the others.
  }
};

/**
 * Compile a graph so that all ranks of a world start their collectives in one order. Ranks compare a digest of their
 * orders; where graphs are the same that is all. Where they differ, ranks tell each other their collectives, and each
 * compiles again for the order that follows from all of them. So graphs may differ by what ranks compute, but not by
 * the collectives that ranks of a group go through together.
 *
 * Every rank of the world compiles at the same place among its collectives. Cost: one small all-gather, or two and a
 * larger one.
 *
 * @throws CollectiveOrderError, the same on every rank, where collectives differ or no order suits all, and where a
 * rank has none to compare, see `tellFailure`.
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
  const agree = (): Promise<Executable> => agreed(executable, compile, communicators, group);
  // A world of one rank has nobody to agree with; that a rank alone in its groups is in a larger one is not seen here.
  const isAlone = Object.values(communicators).every(({ worldSize }) => worldSize === 1);
  return isAlone ? agree() : spanned(spanSink, span, agree);
};

const agreed = async (
  executable: Executable,
  compile: (order: readonly number[]) => Executable,
  communicators: Communicators,
  group: Communicator,
): Promise<Executable> => {
  const { collectives, order } = executable.collectives;
  let canonical: readonly number[] = order;
  try {
    // With their places in the trace: two that are alike in all else would be taken for each other.
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
