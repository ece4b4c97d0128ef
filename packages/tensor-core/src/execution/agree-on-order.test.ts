import { describe, expect, test } from "vitest";
import type { Communicators } from "../communicator.ts";
import { allReduce } from "../functions/collective.ts";
import { add, multiply } from "../functions/elementwise.ts";
import { meshCoordinate } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { jit } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";

/**
 * Creates communicators that support only `exchangeTexts`. A call returns when all ranks of the world have sent their
 * text.
 */
const worldOf = (
  groups: readonly (readonly number[])[],
): { readonly ofRank: Communicators[]; readonly rounds: string[][] } => {
  const worldSize = groups.flat().length;
  const rounds: string[][] = [];
  const heard: ((texts: string[]) => void)[] = [];
  let round: string[] = [];
  const tell = (rank: number, text: string): Promise<string[]> =>
    new Promise((resolve) => {
      round[rank] = text;
      heard.push(resolve);
      if (heard.length < worldSize) return;
      rounds.push(round);
      for (const hear of heard.splice(0)) hear(rounds.at(-1)!);
      round = [];
    });
  const ofRank = Array.from({ length: worldSize }, (_, rank) => {
    const members = groups.find((group) => group.includes(rank))!;
    const group = {
      rank: members.indexOf(rank),
      worldSize: members.length,
      members,
      exchangeTexts: (text: string) => tell(rank, text),
    };
    return { part: group } as unknown as Communicators;
  });
  return { ofRank, rounds };
};

const x = NdArray.from([1, 2]);

describe("ranks that compile", () => {
  const outcomes = (
    ofRank: readonly Communicators[],
    fn: (own: Tensor) => Tensor,
  ): Promise<PromiseSettledResult<unknown>[]> =>
    Promise.allSettled(ofRank.map((communicators) => jit(fn, referenceBackend(), { communicators })(x)));
  const reasons = (settled: readonly PromiseSettledResult<unknown>[]): string[] =>
    settled.map((one) => (one.status === "rejected" ? (one.reason as Error).message : "compiled"));

  test("compare also if a rank is alone in its group, once per signature", async () => {
    const { ofRank, rounds } = worldOf([[0, 1], [2]]);
    const compiled = ofRank.map((communicators) =>
      jit((own: Tensor) => multiply(own, 1 + meshCoordinate("part")), referenceBackend(), { communicators }),
    );
    for (let call = 0; call < 2; call++) await Promise.all(compiled.map((one) => one(x)));
    expect(rounds).toHaveLength(1);
    expect(new Set(rounds[0])).toHaveProperty("size", 1);
  });

  test("all report the collective that differs, and the ranks", async () => {
    const { ofRank } = worldOf([[0, 1, 2]]);
    const found = reasons(
      await outcomes(ofRank, (own) => allReduce(own, "part", meshCoordinate("part") === 1 ? "max" : "sum")),
    );
    expect(found[0]).toMatch(
      /^collective 1 of its group is all-reduce .*"max".* on rank 1, but .*"sum".* on ranks 0 and 2; /,
    );
    expect(new Set(found).size).toBe(1);
  });

  test("do not wait for a rank that cannot trace", async () => {
    const { ofRank } = worldOf([[0, 1, 2]]);
    const found = reasons(
      await outcomes(ofRank, (own) => {
        if (meshCoordinate("part") === 2) throw new Error("no such stage");
        return allReduce(own, "part");
      }),
    );
    const others =
      "rank 2 could not compile its graph: no such stage; all ranks of a world compile together; mend what that rank computes for its place";
    expect(found).toEqual([others, others, "no such stage"]);
  });

  test("do not report an argument that is invalid on one rank, once they have compiled", async () => {
    const { ofRank, rounds } = worldOf([[0, 1]]);
    const compiled = ofRank.map((communicators) =>
      jit((own: Tensor) => add(own, own.shape[0] === 3 ? (undefined as never) : 1), referenceBackend(), {
        communicators,
      }),
    );
    await Promise.all(compiled.map((one) => one(x)));
    await expect(compiled[1]!(NdArray.from([1, 2, 3]))).rejects.toThrow(/add: operand 2/);
    expect(rounds).toHaveLength(1);
  });
});
