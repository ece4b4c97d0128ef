import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** Direction of data. `up` is from the connecting side to the listening side. */
export type Direction = "up" | "down";

/** Returns the buffers to send instead of a frame or TLS record, in order. */
export type Tamper = (piece: Buffer) => Promise<readonly Buffer[]>;

const headerBytes = 32;
const lengthAt = 20;
const recordHeaderBytes = 5;

/** Splits the bytes sent in one direction into frames (docs/protocol.md) or, with TLS, into TLS records. */
class Pieces {
  #rest: Buffer = Buffer.alloc(0);

  take(chunk: Buffer): Buffer[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const pieces: Buffer[] = [];
    for (;;) {
      const inClear = this.#rest.subarray(0, 4).toString("latin1") === "SKN1";
      if (this.#rest.length < (inClear ? headerBytes : recordHeaderBytes)) return pieces;
      const length = inClear
        ? headerBytes + Number(this.#rest.readBigUInt64LE(lengthAt))
        : recordHeaderBytes + this.#rest.readUInt16BE(3);
      if (this.#rest.length < length) return pieces;
      pieces.push(this.#rest.subarray(0, length));
      this.#rest = this.#rest.subarray(length);
    }
  }
}

/** One connection that passes through the attacker. */
export class Passage {
  /** Port to which the client intended to connect. */
  readonly target: number;
  /** Bytes sent so far in each direction. */
  readonly said: Readonly<Record<Direction, Buffer[]>> = { up: [], down: [] };
  readonly #ends: Readonly<Record<Direction, Socket>>; // socket that receives the data of each direction
  readonly #tampers: Partial<Record<Direction, Tamper>> = {};

  constructor(near: Socket, target: number) {
    this.target = target;
    this.#ends = { up: connect({ host: "127.0.0.1", port: target, noDelay: true }), down: near };
    this.#carry("up", near);
    this.#carry("down", this.#ends.up);
  }

  /** Passes later data in `direction` through `tamper`, one frame or TLS record at a time. */
  tamper(direction: Direction, tamper: Tamper): void {
    this.#tampers[direction] = tamper;
  }

  /** Resets the connections to the client and to the server. */
  cut(): void {
    for (const end of Object.values(this.#ends)) end.resetAndDestroy();
  }

  /** Stops forwarding in both directions, without closing the connection. */
  freeze(): void {
    for (const end of Object.values(this.#ends)) end.pause();
  }

  /**
   * Sends `beginning`, the first bytes of a frame or TLS record, in `direction`, and then closes that direction with
   * FIN instead of RST.
   */
  endAfter(direction: Direction, beginning: Buffer): void {
    this.#ends[direction].end(beginning);
  }

  #carry(direction: Direction, from: Socket): void {
    const to = this.#ends[direction];
    const pieces = new Pieces();
    let turn: Promise<void> = Promise.resolve();
    from.on("data", (chunk: Buffer) => {
      this.said[direction].push(chunk);
      const tamper = this.#tampers[direction];
      if (tamper === undefined) return void to.write(chunk);
      for (const piece of pieces.take(chunk))
        turn = turn.then(async () => {
          for (const part of await tamper(piece))
            if (to.writable) await new Promise((resolve) => to.write(part, resolve));
        });
    });
    from.on("error", () => void turn.then(() => to.destroy()));
    from.on("end", () => void turn.then(() => to.end()));
    from.on("close", () => void turn.then(() => to.destroy()));
  }
}

const detour = new URL("detour.ts", import.meta.url).href;

/** A man in the middle. All connections of processes started with `env` pass through it. */
export class Middle {
  readonly passages: Passage[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  /** @param meet Called with each connection before any data is forwarded. */
  private constructor(meet: (passage: Passage) => void) {
    this.#server = createServer({ noDelay: true }, (near) => {
      this.#sockets.add(near.once("close", () => this.#sockets.delete(near)));
      // The address encodes the port, see detour.ts.
      const [network, high, low] = near.localAddress!.split(".").map(Number);
      if (network !== 127) return void near.destroy();
      const passage = new Passage(near, high! * 256 + low!);
      this.passages.push(passage);
      meet(passage);
    });
  }

  static async open(meet: (passage: Passage) => void = () => undefined): Promise<Middle> {
    const middle = new Middle(meet);
    await new Promise<void>((resolve) => middle.#server.listen(0, "0.0.0.0", resolve)); // for every address of this machine's own network
    return middle;
  }

  /** Environment variables that redirect the connections of a process to this server. */
  get env(): Readonly<Record<string, string>> {
    const { port } = this.#server.address() as AddressInfo;
    return { SKEIN_TEST_DETOUR: String(port), NODE_OPTIONS: `--import=${detour}` };
  }

  /** Returns the connections to the coordinator or to a rank. The first connection of a run is to the coordinator. */
  whichLeadTo(where: "coordinator" | "rank"): readonly Passage[] {
    const coordinator = this.passages[0]?.target;
    return this.passages.filter(({ target }) => (target === coordinator) === (where === "coordinator"));
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
