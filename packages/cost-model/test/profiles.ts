import fc from "fast-check";
import type { GradientProfile, LinearCollectiveModel, ProfiledTensor } from "../src/index.ts";
import type { BucketPlan } from "@skein/tensor-core";

/** Returns a profile with the given values per tensor, in ready order. */
export const profileOf = (rows: readonly Omit<ProfiledTensor, "path">[]): GradientProfile => ({
  tensors: rows.map((row, i) => ({ path: `t${i}`, ...row })),
});

/** Profiles with small integers for seconds and bytes, so that every sum is exact. */
export const profiles = ({
  most = 10,
  least = 0,
}: {
  readonly most?: number;
  readonly least?: number;
} = {}): fc.Arbitrary<GradientProfile> =>
  fc
    .array(
      fc.record({
        bytes: fc.oneof(fc.nat(4), fc.nat(40)),
        backwardSeconds: fc.oneof(fc.nat(4), fc.nat(40)),
        forwardSeconds: fc.oneof(fc.nat(4), fc.nat(40)),
      }),
      { minLength: least, maxLength: most },
    )
    .map(profileOf);

export const models: fc.Arbitrary<LinearCollectiveModel> = fc.record({
  startupSeconds: fc.nat(12),
  secondsPerByte: fc.integer({ min: 0, max: 3 }),
});

/** Yields all partitions of the L tensors into groups of consecutive tensors: 2^(L − 1) partitions. */
export function* groupings({ tensors }: GradientProfile): Generator<BucketPlan> {
  const paths = tensors.map(({ path }) => path);
  if (paths.length === 0) {
    yield [];
    return;
  }
  for (let cuts = 0; cuts < 2 ** (paths.length - 1); cuts++) {
    const plan: string[][] = [[]];
    for (const [i, path] of paths.entries()) {
      plan.at(-1)!.push(path);
      if (i + 1 < paths.length && (cuts >> i) & 1) plan.push([]);
    }
    yield plan;
  }
}

/** Pairs of a profile and one of its groupings. */
export const planned = (most = 8): fc.Arbitrary<readonly [GradientProfile, BucketPlan]> =>
  profiles({ most, least: 1 }).chain((profile) =>
    fc.nat(2 ** (profile.tensors.length - 1) - 1).map((index) => [profile, [...groupings(profile)][index]!] as const),
  );
