import type { CollectiveKind } from "@skein/tensor-core/backend";

export const kinds: readonly CollectiveKind[] = [
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "all-to-all",
  "broadcast",
  "reduce",
  "send-receive",
  "barrier",
];

/** What a tag may name: a collective, or an exchange of what ranks agree on, which none asks for as a request. */
export type TaggedKind = CollectiveKind | "agreement";
const taggedKinds: readonly TaggedKind[] = [...kinds, "agreement"];

/** A tag says which request a message belongs to: its number in its group, the group and its kind. 29 bits. */
export const tagOf = (sequence: number, kind: TaggedKind, group = 0): number =>
  ((sequence & 0x1fffff) << 8) | (group << 4) | taggedKinds.indexOf(kind);
/** A tag modulo this says group and kind alone. */
export const tagsOfGroupsAndKinds: number = 1 << 8;
export const kindOf = (tag: number): TaggedKind => taggedKinds[tag & 15]!;
export const groupOf = (tag: number): number => (tag >>> 4) & 15;
/** The number of a request in its group. */
export const sequenceOf = (tag: number): number => (tag >>> 8) & 0x1fffff;
