import { RanksDisagreeError, reducible } from "@skein/collectives";
import { after, combiningKinds, minBytes, type NativeCollectives } from "@skein/collectives/transport";
import { bytesPerElement } from "@skein/tensor-core";
import type { CollectiveKind, CollectiveRequest } from "@skein/tensor-core/backend";
import { largestCount } from "./addon.ts";
import { MpiTransferError, NativeTimeoutError } from "./errors.ts";
import type { MpiLane } from "./lane.ts";
import type { Answer, Command } from "./requests.ts";

const kinds: ReadonlySet<CollectiveKind> = new Set<CollectiveKind>([
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "all-to-all",
  "broadcast",
  "reduce",
  "barrier",
]);

// Maximum size in bytes of requests that use schedules on two ranks. An all-reduce of 4 KiB by MPI_Iallreduce takes 12
// to 15 µs on two ranks of one machine, an all-reduce of 16 KiB takes 23 µs, and the preceding comparison adds 1 µs. A
// schedule for two ranks has two messages.
const schedulesUpTo = 16_384;

/** Returns a 32-bit hash (FNV-1a) of the values that all ranks must share; never 0. */
const fingerprint = (parts: readonly (string | number)[]): number => {
  let hash = 0x811c9dc5;
  for (const character of parts.join("/")) hash = Math.imul(hash ^ character.charCodeAt(0), 0x01000193);
  return hash >>> 0 || 1;
};

/**
 * Returns MPI's own collectives on the given lanes, one at a time per lane. MPI's collectives are tuned to the machine,
 * but choose their own order of sums. On three or more ranks, a float sum may therefore differ bitwise from the sum
 * computed by a schedule or by another MPI library. MPI would combine different requests without an error. Therefore
 * all ranks compare their requests before each collective, which takes some µs.
 *
 * @param limit maximum number of elements per MPI call.
 */
export const nativeCollectives = (lanes: readonly MpiLane[], limit: number = largestCount): NativeCollectives => {
  const worldSize = lanes[0]!.worldSize;
  const covers = ({ kind, dtype, input, output, ragged }: CollectiveRequest): boolean => {
    if (!kinds.has(kind) || ragged !== undefined) return false;
    if (combiningKinds.has(kind) && !reducible.has(dtype)) return false;
    // All-reduce, broadcast and reduce are split into parts. For the other kinds, MPI counts elements per rank, and
    // some libraries multiply the count by the number of ranks in a C int.
    return (
      kind === "all-reduce" ||
      kind === "broadcast" ||
      kind === "reduce" ||
      Math.max(input.byteLength, output.byteLength) <= limit
    );
  };

  const commandOf = (request: CollectiveRequest, lane: MpiLane, collective: string): Command => {
    const { kind, dtype, input, output, reduction, root = 0 } = request;
    const width = bytesPerElement[dtype];
    const { communicator, timeoutMilliseconds } = lane;
    const agreement = fingerprint([
      kind,
      dtype,
      reduction ?? "sum",
      root,
      input.byteLength,
      output.byteLength,
      collective,
    ]);
    const shared = { communicator, input, output, limit, timeoutMilliseconds, agreement };
    const share = (bytes: number): Command => ({ ...shared, kind: kind as Command["kind"], count: bytes });
    switch (kind) {
      case "all-reduce":
      case "reduce-scatter":
        return { ...shared, kind, dtype, ...(reduction && { reduction }), count: output.byteLength / width };
      case "reduce":
        return {
          ...shared,
          kind,
          dtype,
          ...(reduction && { reduction }),
          count: output.byteLength / width,
          peer: root,
        };
      case "all-gather":
        return share(input.byteLength);
      case "all-to-all":
        return share(input.byteLength / worldSize);
      case "broadcast":
        if (lane.rank === root && (output.buffer !== input.buffer || output.byteOffset !== input.byteOffset))
          output.set(input);
        return { ...share(output.byteLength), input: output, peer: root };
      default:
        return { kind: "barrier", communicator, timeoutMilliseconds, agreement };
    }
  };

  const judge = (
    { outcome, message }: Answer,
    { kind, input }: CollectiveRequest,
    lane: MpiLane,
    collective: string,
  ): void => {
    if (outcome === "timeout") throw lane.fail(new NativeTimeoutError(lane.rank, collective, lane.timeoutMilliseconds));
    const place = { rank: lane.rank, peer: -1, collective };
    if (outcome === "mismatch")
      throw lane.fail(
        new RanksDisagreeError(
          place,
          `not all ranks have started ${kind} of ${input.byteLength} bytes as their next collective`,
        ),
      );
    if (outcome !== "done") throw lane.fail(new MpiTransferError(place, message));
    lane.throwIfBroken();
  };

  /** Clears the output of a reduce on all ranks except the root, because MPI does not clear this output. */
  const complete = ({ kind, root = 0, output }: CollectiveRequest, lane: MpiLane): void => {
    if (kind === "reduce" && lane.rank !== root) output.fill(0);
  };

  return {
    name: "native",
    rankOrder: false,
    schedulesUpTo,
    covers,
    run: (request, index, tag, nameOf) => {
      const lane = lanes[index]!;
      const collective = nameOf(tag);
      lane.throwIfBroken();
      const answer = lane.requests.post(commandOf(request, lane, collective));
      return after(answer, (given) => {
        judge(given, request, lane, collective);
        complete(request, lane);
      });
    },
    bytesSent: (request) => minBytes(request, worldSize),
  };
};
