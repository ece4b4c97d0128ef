import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { PeerAddress } from "../src/network/dial.ts";

/**
 * A fault injected by a proxy in one direction: `down` is the direction of payloads, from the listening to the
 * connecting process.
 */
export interface Damage {
  readonly direction: "up" | "down";
  /** Number of bytes of the connection after which the fault occurs. */
  readonly at: number;
  /**
   * Type of the fault: flip a bit of the next byte; drop the remaining bytes and close; or stop forwarding without
   * closing.
   */
  readonly what: { readonly flip: number } | "end" | "freeze";
}

/** A cut of one connection, after a number of bytes in one direction, by a reset or an orderly close. */
export interface Cut {
  readonly direction: "up" | "down";
  readonly at: number;
  readonly how: "reset" | "end";
}

/** A cable between a rank and the port of another rank. The cable can be cut, frozen, or made to corrupt data. */
export class Cable {
  damage: Damage | undefined;
  /** Cuts of the next connections, in order; one per connection. */
  cuts: Cut[] = [];
  /** Number of connections ended by a cut. */
  numCut = 0;
  /** Whether new connections are rejected. */
  down = false;
  /** Number of connections rejected because of `down`. */
  numRejected = 0;
  /** Delay of all data in milliseconds. */
  delayMilliseconds = 0;
  #frozen = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: PeerAddress) {
    this.#server = createServer({ noDelay: true }, (near) => {
      if (this.down) {
        this.numRejected += 1;
        near.resetAndDestroy();
        return;
      }
      const far = connect({ host: target.host, port: target.port, noDelay: true });
      const cut = this.cuts.shift();
      this.#join(near, far, "up", cut);
      this.#join(far, near, "down", cut);
    });
  }

  /** Creates a cable to `target`. Connect to the returned `address` to use the cable. */
  static async to(target: PeerAddress): Promise<{ cable: Cable; address: PeerAddress }> {
    const cable = new Cable(target);
    await new Promise<void>((resolve) => cable.#server.listen(0, "127.0.0.1", resolve));
    return { cable, address: { ...target, port: (cable.#server.address() as AddressInfo).port } };
  }

  /** Stops forwarding in both directions without closing, like a cable that was pulled. */
  freeze(): void {
    this.#frozen = true;
  }

  /** Resets all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Closes all connections in an orderly way. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.end();
  }

  /** Closes all connections and rejects new connections, as the operating system does for a killed process. */
  sever(): void {
    this.#server.close();
    this.hangUp();
  }

  async remove(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #join(from: Socket, to: Socket, direction: Damage["direction"], cut: Cut | undefined): void {
    this.#sockets.add(from);
    let carried = 0;
    let silent = false;
    from.on("data", (chunk: Buffer) => {
      if (this.#frozen || silent) return;
      const { damage } = this;
      const begin = carried;
      carried += chunk.length;
      if (cut?.direction === direction && cut.at < carried) {
        silent = true;
        this.numCut += 1;
        const end = (): void => {
          for (const socket of [from, to]) {
            if (cut.how === "reset") socket.resetAndDestroy();
            else socket.end();
          }
        };
        to.write(chunk.subarray(0, Math.max(0, cut.at - begin)), end);
        return;
      }
      if (this.delayMilliseconds > 0) return void setTimeout(() => to.write(chunk), this.delayMilliseconds);
      if (damage?.direction !== direction || damage.at >= carried) {
        if (!to.write(chunk)) {
          from.pause();
          to.once("drain", () => from.resume());
        }
        return;
      }
      const at = Math.max(0, damage.at - begin);
      if (typeof damage.what === "object") {
        this.damage = undefined; // only once
        chunk[at]! ^= 1 << damage.what.flip;
        to.write(chunk);
        return;
      }
      silent = true;
      to.write(chunk.subarray(0, at));
      if (damage.what === "end") to.end();
    });
    from.on("end", () => this.#frozen || silent || to.end());
    from.on("error", () => to.destroy());
    from.on("close", () => {
      this.#sockets.delete(from);
      if (!this.#frozen) to.destroy();
    });
  }
}
