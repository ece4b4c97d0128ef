import { goodbyeMilliseconds } from "../failure-detection/goodbye.ts";
import type { Link, LinkReceiver, OutgoingFrame } from "./link.ts";
import type { ResumableSocket } from "./resumable-socket.ts";

/**
 * A link over sockets. Data are sent over sockets dialed by the peer, and received over sockets dialed by this rank.
 * Control frames use the opposite direction of each socket, where they never wait behind data.
 */
export class SocketLink implements Link {
  readonly peer: number;
  readonly #accepted: readonly ResumableSocket[];
  readonly #dialled: readonly ResumableSocket[];
  readonly #all: readonly ResumableSocket[];
  readonly #open: Set<ResumableSocket>;
  #failed = false;
  #whenEnded: () => void = () => undefined;

  constructor(peer: number, accepted: readonly ResumableSocket[], dialled: readonly ResumableSocket[]) {
    this.peer = peer;
    this.#accepted = accepted;
    this.#dialled = dialled;
    this.#all = [...accepted, ...dialled];
    this.#open = new Set(this.#all);
  }

  get width(): number {
    return this.#accepted.length;
  }

  open(receiver: LinkReceiver): void {
    for (const socket of this.#all)
      socket.open({
        limit: (header) => receiver.limit(header),
        target: (header) => receiver.target(header),
        torn: (header) => receiver.torn(header),
        frame: (header, payload) => receiver.frame(header, payload),
        closed: (error) => {
          this.#open.delete(socket);
          if (this.#open.size === 0) this.#whenEnded();
          if (this.#failed || (error === undefined && this.#open.size > 0)) return;
          this.#failed = error !== undefined;
          receiver.closed(error);
        },
      });
  }

  write(frame: OutgoingFrame, handedOver?: () => void, freed?: () => void): void {
    if (frame.type !== "data") return this.#dialled[0]!.write(frame, handedOver, freed);
    let free = this.#accepted[0]!;
    for (const socket of this.#accepted) if (socket.outstanding < free.outstanding) free = socket;
    free.write(frame, handedOver, freed);
  }

  hurry(): void {
    for (const socket of this.#accepted) socket.hurry();
  }

  ping(): void {
    for (const socket of this.#open) socket.ping();
  }

  silence(): number {
    const now = performance.now();
    let longest = 0;
    for (const { heardAt } of this.#open) longest = Math.max(longest, now - heardAt);
    return longest;
  }

  async close(): Promise<void> {
    if (this.#open.size > 0) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const ended = new Promise<void>((resolve) => {
        this.#whenEnded = resolve;
        timer = setTimeout(resolve, goodbyeMilliseconds);
      });
      for (const socket of this.#open) socket.bye();
      await ended;
      clearTimeout(timer);
    }
    for (const socket of this.#all) socket.destroy();
  }

  destroy(): void {
    for (const socket of this.#all) socket.leave();
    this.#open.clear();
    this.#whenEnded();
  }
}
