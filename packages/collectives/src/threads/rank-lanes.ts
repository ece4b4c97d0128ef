import { plainArithmetic } from "../plain-arithmetic.ts";
import { wasmArithmetic } from "../wasm-arithmetic.ts";
import type { Arithmetic } from "../arithmetic.ts";
import { type MessageMemory, wasmMessageMemory } from "../message-memory.ts";
import { ThreadTransport } from "../transport/thread-transport.ts";
import type { Transport } from "../transport/transport.ts";
import { Carrier, type NativeCollectives } from "./carrier.ts";
import { Control, laneCount, type WorldConnection } from "./control.ts";
import { Lane } from "./lane.ts";

/** How the requests of a rank travel; by default between the threads of this process. */
export interface Carriage {
  readonly transports: readonly Transport[];
  readonly memory: MessageMemory;
  readonly native?: NativeCollectives | undefined;
}

/** The lanes of one rank, as one thread of it sees them: each with what carries its requests out. */
export class RankLanes {
  readonly control: Control;
  /** Of this thread. */
  readonly messages: MessageMemory;
  readonly lanes: readonly { readonly lane: Lane; readonly carrier: Carrier }[];

  constructor(connection: WorldConnection, carriage?: Carriage) {
    const { memory, kernels, preference } = connection;
    const control = new Control(connection);
    const arithmetic: Arithmetic = kernels === "none" ? plainArithmetic() : wasmArithmetic(kernels, memory);
    const {
      memory: messages,
      transports,
      native,
    } = carriage ?? {
      memory: wasmMessageMemory(memory),
      transports: Array.from({ length: laneCount }, (_, lane) => new ThreadTransport(control, memory, lane)),
    };
    this.control = control;
    this.messages = messages;
    this.lanes = transports.map((transport, index) => ({
      lane: new Lane(control, memory, index),
      carrier: new Carrier({ control, arithmetic, memory: messages, preference, transport, lane: index, native }),
    }));
  }
}
