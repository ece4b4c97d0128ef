/** A connection whose other end has not proven yet that it belongs to the job. */
export interface Unproven {
  /** Whether the connection was closed to make room for another connection. */
  readonly evicted: boolean;
  /** Records that the connection has sent a valid message. Connections without a valid message are evicted first. */
  spoke(): void;
  /** Frees the slot of the connection, which was authenticated or has ended. */
  leave(): void;
}

interface Slot {
  readonly source: string;
  readonly evict: () => void;
  silent: boolean;
  evicted: boolean;
}

/**
 * Limits unauthenticated connections without locking any process out. A new connection is always accepted: if all slots
 * are taken, it evicts another connection. If any sources (addresses, see `sourceOf`) exceed the quota, a connection of
 * the source with the largest excess is evicted. Among the candidates, the oldest silent connection is evicted, or a
 * random connection if no candidate is silent. The choice is random because otherwise a flood of connections that send
 * valid messages would evict each rank before its second round trip. With a random choice, a rank that retries is
 * eventually admitted, however dense the flood.
 *
 * A quota determines only which connections are evicted first, and refuses no source: all ranks of a job may share one
 * address, on one machine or behind address translation (NAT).
 */
export class UnprovenConnections {
  readonly #slots: number;
  readonly #quota: number;
  readonly #random: () => number;
  readonly #held = new Set<Slot>(); // Oldest first.
  readonly #counts = new Map<string, number>();

  /**
   * Creates an empty register of unauthenticated connections with `options.slots` slots.
   *
   * @param options.quota number of connections per source that the ranks may need. If a source has more connections,
   * its connections are evicted first.
   * @param options.random returns random numbers in [0, 1). Default: `Math.random`.
   */
  constructor({
    slots,
    quota,
    random = Math.random,
  }: { readonly slots: number; readonly quota: number; readonly random?: () => number }) {
    this.#slots = slots;
    this.#quota = quota;
    this.#random = random;
  }

  get size(): number {
    return this.#held.size;
  }

  /**
   * Registers a connection from `source` (see `sourceOf`). `evict` is called when another connection takes its slot.
   */
  enter(source: string, evict: () => void): Unproven {
    if (this.#held.size >= this.#slots) this.#evictOne();
    const slot: Slot = { source, evict, silent: true, evicted: false };
    this.#held.add(slot);
    this.#counts.set(source, (this.#counts.get(source) ?? 0) + 1);
    return {
      get evicted() {
        return slot.evicted;
      },
      spoke: () => {
        slot.silent = false;
      },
      leave: () => this.#release(slot),
    };
  }

  #evictOne(): void {
    let first: Slot[] = [];
    for (const slot of this.#held) {
      const order = first.length === 0 ? -1 : this.#compare(slot, first[0]!);
      if (order < 0) first = [slot];
      else if (order === 0) first.push(slot);
    }
    const victim = first[0]!.silent ? first[0]! : first[Math.floor(this.#random() * first.length)]!;
    this.#release(victim);
    victim.evicted = true;
    victim.evict();
  }

  /**
   * Compares the eviction priority of two slots, ignoring their ages. Returns a negative number if `slot` should be
   * evicted before `other`.
   */
  #compare(slot: Slot, other: Slot): number {
    const difference = this.#excess(other) - this.#excess(slot);
    return difference === 0 ? Number(other.silent) - Number(slot.silent) : difference;
  }

  #excess({ source }: Slot): number {
    return Math.max(0, this.#counts.get(source)! - this.#quota);
  }

  #release(slot: Slot): void {
    if (!this.#held.delete(slot)) return;
    const left = this.#counts.get(slot.source)! - 1;
    if (left === 0) this.#counts.delete(slot.source);
    else this.#counts.set(slot.source, left);
  }
}

/**
 * Returns the source of an address: the address itself, or for IPv6 its 64-bit network, because one machine may own a
 * whole network.
 */
export const sourceOf = (address: string | undefined): string => {
  if (address === undefined) return "gone";
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !address.includes(":")) return mapped ?? address;
  const [head = "", tail] = address.replace(/%.*$/, "").split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => "0");
  return `${[...left, ...zeros, ...right]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
};
