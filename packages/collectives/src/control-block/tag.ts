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

/**
 * Kind of operation in a tag: a collective, or "agreement", an internal exchange between ranks that is not a user
 * request.
 */
export type TaggedKind = CollectiveKind | "agreement";
const taggedKinds: readonly TaggedKind[] = [...kinds, "agreement"];

/** Returns the tag of a request's messages, 29 bits: the request's number in its group, the group, and the kind. */
export const tagOf = (sequence: number, kind: TaggedKind, group = 0): number =>
  ((sequence & 0x1fffff) << 8) | (group << 4) | taggedKinds.indexOf(kind);
/** Modulus that reduces a tag to its group and kind. */
export const tagsOfGroupsAndKinds: number = 1 << 8;
export const kindOf = (tag: number): TaggedKind => taggedKinds[tag & 15]!;
export const groupOf = (tag: number): number => (tag >>> 4) & 15;
/** Returns the sequence number of a request in its group. */
export const sequenceOf = (tag: number): number => (tag >>> 8) & 0x1fffff;
