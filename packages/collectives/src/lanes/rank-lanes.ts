import { plainArithmetic } from "../plain-arithmetic.ts";
import { wasmArithmetic } from "../wasm-arithmetic.ts";
import type { Arithmetic } from "../arithmetic.ts";
import { type MessageMemory, wasmMessageMemory } from "../message-memory.ts";
import { ThreadExchange } from "../transport/thread-exchange.ts";
import { ThreadTransport } from "../transport/thread-transport.ts";
import type { Transport } from "../transport/transport.ts";
import type { NativeCollectives } from "../transport/native-collectives.ts";
import { RequestExecutor } from "./request-executor.ts";
import { ControlBlock } from "../control-block/control-block.ts";
import { laneCount } from "../control-block/layout.ts";
import type { WorldConnection } from "../control-block/world-connection.ts";
import { Lane } from "./lane.ts";

/**
 * Transports of a rank's lanes, their message memory, and the native collectives. Default: the transports between the
 * threads of this process.
 */
export interface LaneTransports {
  readonly transports: readonly Transport[];
  readonly memory: MessageMemory;
  /**
   * Returns the native collectives (executed by an engine such as MPI, without a schedule). The first native collective
   * that supports a request executes the request.
   */
  readonly natives?: ((arithmetic: Arithmetic) => readonly NativeCollectives[]) | undefined;
}

/** Returns the transports for a world whose ranks are all threads of this process. */
const betweenThreads = ({ memory, exchangeParts: parts }: WorldConnection, control: ControlBlock): LaneTransports => {
  const messages = wasmMessageMemory(memory);
  return {
    memory: messages,
    transports: Array.from({ length: laneCount }, (_, lane) => new ThreadTransport(control, memory, lane)),
    natives: (arithmetic) => (parts === undefined ? [] : [new ThreadExchange({ control, memory, arithmetic, parts })]),
  };
};

/** Lanes of one rank and the lanes' request executors, as used by one thread of the rank. */
export class RankLanes {
  readonly control: ControlBlock;
  readonly arithmetic: Arithmetic;
  /** Message memory of this thread. */
  readonly messages: MessageMemory;
  readonly lanes: readonly { readonly lane: Lane; readonly executor: RequestExecutor }[];

  constructor(connection: WorldConnection, laneTransports?: LaneTransports) {
    const { memory, kernels, preference } = connection;
    const control = new ControlBlock(connection);
    const arithmetic: Arithmetic = kernels === "none" ? plainArithmetic() : wasmArithmetic(kernels, memory);
    const { memory: messages, transports, natives } = laneTransports ?? betweenThreads(connection, control);
    const executing = natives?.(arithmetic) ?? [];
    this.control = control;
    this.arithmetic = arithmetic;
    this.messages = messages;
    this.lanes = transports.map((transport, index) => ({
      lane: new Lane(control, memory, index),
      executor: new RequestExecutor({
        control,
        arithmetic,
        memory: messages,
        preference,
        transport,
        lane: index,
        natives: executing,
      }),
    }));
  }
}
