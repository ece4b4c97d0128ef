/** A connection whose other end has not proven yet that it belongs to the job. */
export interface Unproven {
  /** It has said something that makes sense: it goes after those that are silent. */
  spoke(): void;
  /** It has proven itself, or it is over: its place is free. */
  leave(): void;
}

interface Place {
  readonly source: string;
  readonly evict: () => void;
  silent: boolean;
}

/**
 * Bounds the connections of strangers without shutting anybody out. There is always room for one more: when all places are taken, the one
 * that comes ends another. First goes one of a source with more than its quota, where there is such; among those a silent one; among
 * those the oldest. So a rank that proves itself at once gets in, as long as fewer newcomers than there are places overtake it in its
 * two round trips; if not, it comes again.
 *
 * A quota says whose connections go first, and refuses nobody: all ranks of a job may share one address, on one machine or behind one
 * translator of addresses.
 */
export class UnprovenConnections {
  readonly #places: number;
  readonly #quota: number;
  readonly #held = new Set<Place>(); // oldest first
  readonly #counts = new Map<string, number>();

  /** @param quota how many one source may hold before its own go first: as many as the ranks may need. */
  constructor({ places, quota }: { readonly places: number; readonly quota: number }) {
    this.#places = places;
    this.#quota = quota;
  }

  get size(): number {
    return this.#held.size;
  }

  /** Give a place to a connection from `source` (see `sourceOf`); `evict` is called when another takes it. */
  enter(source: string, evict: () => void): Unproven {
    if (this.#held.size >= this.#places) this.#evictOne();
    const place: Place = { source, evict, silent: true };
    this.#held.add(place);
    this.#counts.set(source, (this.#counts.get(source) ?? 0) + 1);
    return {
      spoke: () => {
        place.silent = false;
      },
      leave: () => this.#release(place),
    };
  }

  #evictOne(): void {
    let victim: Place | undefined;
    for (const place of this.#held) if (victim === undefined || this.#before(place, victim)) victim = place;
    this.#release(victim!);
    victim!.evict();
  }

  /** Whether `place` is to go before `other`, which is older. */
  #before(place: Place, other: Place): boolean {
    const difference = this.#excess(place) - this.#excess(other);
    return difference === 0 ? place.silent && !other.silent : difference > 0;
  }

  #excess({ source }: Place): number {
    return Math.max(0, this.#counts.get(source)! - this.#quota);
  }

  #release(place: Place): void {
    if (!this.#held.delete(place)) return;
    const left = this.#counts.get(place.source)! - 1;
    if (left === 0) this.#counts.delete(place.source);
    else this.#counts.set(place.source, left);
  }
}

/** The source that an address counts for: the address itself, of IPv6 the network of 64 bits, which one machine has to itself. */
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
