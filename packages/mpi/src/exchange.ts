import { after, type Arithmetic, type MessageMemory, type NativeCollectives } from "@skein/collectives/transport";
import type { CollectiveRequest } from "@skein/tensor-core/backend";
import type { MpiLane } from "./lane.ts";

/** Maximum number of bytes that a rank receives in an exchange. */
const maxReceivedBytes = 16_384;
/**
 * Maximum number of ranks of an exchange. With more ranks, algorithms with a logarithmic number of messages are faster.
 */
const maxRanks = 8;

export interface ExchangeParts {
  readonly lanes: readonly MpiLane[];
  /** Message memory of this thread, into which the operands of other ranks are received. */
  readonly memory: MessageMemory;
  readonly arithmetic: Arithmetic;
}

/** Memory in which a rank stores the operands received from all other ranks, for requests of one size. */
interface Gathered {
  readonly whole: Uint8Array;
  /** Views of the operands, by rank. The view of this rank is not used. */
  readonly parts: readonly Uint8Array[];
}

/**
 * Returns small collectives that are executed as one command of the addon: each rank sends its operand to all other
 * ranks, and has received all operands when the command completes. Sums are in rank order.
 *
 * Cost: P − 1 messages of S bytes, sent at the same time, so the latency of one message.
 */
export const mpiExchange = ({ lanes, memory, arithmetic }: ExchangeParts): NativeCollectives => {
  const { rank, worldSize } = lanes[0]!;
  const others = worldSize - 1;
  /**
   * Memory of each lane, for requests with the size of the lane's last request. Training repeats requests, so the
   * memory is usually reused.
   */
  const gatheredOf: (Gathered | undefined)[] = lanes.map(() => undefined);

  const placesFor = (lane: number, byteLength: number): Gathered => {
    const last = gatheredOf[lane];
    if (last?.parts[0]!.byteLength === byteLength) return last;
    if (last !== undefined) memory.give(last.whole);
    const whole = memory.take(worldSize * byteLength);
    const parts = Array.from({ length: worldSize }, (_, peer) =>
      whole.subarray(peer * byteLength, (peer + 1) * byteLength),
    );
    return (gatheredOf[lane] = { whole, parts });
  };

  const finish = (request: CollectiveRequest, places: Gathered | undefined): void => {
    const { dtype, reduction = "sum", input, output } = request;
    const { byteLength } = input;
    if (byteLength === 0) return;
    if (places === undefined)
      return arithmetic.copy(output.subarray(rank * byteLength, (rank + 1) * byteLength), input);
    arithmetic.combine(dtype, reduction, [output], places.parts.with(rank, input));
  };

  return {
    name: "exchange",
    rankOrder: true,
    schedulesUpTo: -1,
    covers: ({ kind, input, ragged }) =>
      (kind === "all-reduce" || kind === "all-gather" || kind === "barrier") &&
      ragged === undefined &&
      others > 0 &&
      worldSize <= maxRanks &&
      others * input.byteLength <= maxReceivedBytes,
    run: (request, index, tag) => {
      const lane = lanes[index]!;
      lane.throwIfBroken();
      const { input, output, kind } = request;
      const { byteLength } = input;
      const places = kind === "all-gather" ? undefined : placesFor(index, byteLength);
      const { communicator, timeoutMilliseconds } = lane;
      const answer = lane.requests.post({
        kind: "exchange",
        communicator,
        input,
        output: places?.whole ?? output,
        count: byteLength,
        tag,
        timeoutMilliseconds,
      });
      return after(answer, (given) => {
        lane.check(given, { tag, byteLength });
        finish(request, places);
      });
    },
    bytesSent: ({ input }) => others * input.byteLength,
  };
};
