import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { PeerAddress } from "../src/network/dial.ts";

/**
 * A fault that a proxy injects, per direction: `down` is from the listening to the connecting side, the direction of
 * payloads.
 */
export interface Damage {
  readonly direction: "up" | "down";
  /** After this many bytes of a connection. */
  readonly at: number;
  /** Flip a bit of the next byte; drop the rest and close; or silently forward nothing more. */
  readonly what: { readonly flip: number } | "end" | "freeze";
}

/** The end of one connection: after this many bytes of a direction, by a reset or an orderly close. */
export interface Cut {
  readonly direction: "up" | "down";
  readonly at: number;
  readonly how: "reset" | "end";
}

/** A cable between a rank and the port of another, which can be cut, frozen, or made to corrupt data. */
export class Cable {
  damage: Damage | undefined;
  /** The first cut applies to the next connection, and so on. */
  cuts: Cut[] = [];
  /** The number of connections ended by a cut. */
  numCut = 0;
  /** Reject new connections. */
  down = false;
  /** The number of connections rejected by it. */
  numRejected = 0;
  /** The delay of all data. */
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

  /** A cable to `target`, and the address to connect to in order to use it. */
  static async to(target: PeerAddress): Promise<{ cable: Cable; address: PeerAddress }> {
    const cable = new Cable(target);
    await new Promise<void>((resolve) => cable.#server.listen(0, "127.0.0.1", resolve));
    return { cable, address: { ...target, port: (cable.#server.address() as AddressInfo).port } };
  }

  /** Silently forward nothing more, in either direction, like a cable that was pulled. */
  freeze(): void {
    this.#frozen = true;
  }

  /** Reset all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Close all connections in an orderly way. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.end();
  }

  /** Close all connections and reject new ones, as the operating system does for a killed process. */
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
