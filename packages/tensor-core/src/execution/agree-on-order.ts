import type { Executable } from "./backend.ts";
import type { Communicator, Communicators } from "../communicator.ts";
import { spanned, type Tracer } from "../tracer.ts";
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

/**
 * Compile a graph so that all ranks of a world start their collectives in one order. Ranks compare a digest of their
 * orders; where graphs are the same that is all. Where they differ, ranks tell each other their collectives, and each
 * compiles again for the order that follows from all of them.
 *
 * Every rank of the world compiles at the same place among its collectives. Cost: one small all-gather, or two and a
 * larger one.
 *
 * @throws CollectiveOrderError, on every rank, where no order suits all.
 */
export const agreeOnOrder = (
  compile: (order?: readonly number[]) => Executable,
  communicators: Communicators,
  tracer?: Tracer,
): Executable | Promise<Executable> => {
  const executable = compile();
  const group = Object.values(communicators).find(({ worldSize }) => worldSize > 1);
  if (group === undefined) return executable;
  const span = { name: "agree on the order of collectives", track: "host" } as const;
  return spanned(tracer, span, () => agreed(executable, compile, communicators, group));
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
