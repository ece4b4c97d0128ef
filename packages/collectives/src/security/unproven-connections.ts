/** A connection whose other end has not proven yet that it belongs to the job. */
export interface Unproven {
  /** Whether another has taken its place: then it was ended. */
  readonly evicted: boolean;
  /** It has said something that makes sense: it goes after those that are silent. */
  spoke(): void;
  /** It has proven itself, or it is over: its place is free. */
  leave(): void;
}

interface Place {
  readonly source: string;
  readonly evict: () => void;
  silent: boolean;
  evicted: boolean;
}

/**
 * Bounds the connections of strangers without shutting anybody out. There is always room for one more: when all places
 * are taken, the one that comes ends another. First goes one of a source with more than its quota, where there is such;
 * among those the oldest that is silent; and where all have spoken, any of them. By chance, since a flood that speaks
 * would otherwise push each rank out before its second round trip; so a rank that comes again gets in, however dense
 * the flood.
 *
 * A quota says whose connections go first, and refuses nobody: all ranks of a job may share one address, on one machine
 * or behind one translator of addresses.
 */
export class UnprovenConnections {
  readonly #places: number;
  readonly #quota: number;
  readonly #random: () => number;
  readonly #held = new Set<Place>(); // oldest first
  readonly #counts = new Map<string, number>();

  /**
   * @param options.quota how many one source may hold before its own go first: as many as the ranks may need.
   * @param options.random as `Math.random`, which is the default.
   */
  constructor({
    places,
    quota,
    random = Math.random,
  }: { readonly places: number; readonly quota: number; readonly random?: () => number }) {
    this.#places = places;
    this.#quota = quota;
    this.#random = random;
  }

  get size(): number {
    return this.#held.size;
  }

  /** Give a place to a connection from `source` (see `sourceOf`); `evict` is called when another takes it. */
  enter(source: string, evict: () => void): Unproven {
    if (this.#held.size >= this.#places) this.#evictOne();
    const place: Place = { source, evict, silent: true, evicted: false };
    this.#held.add(place);
    this.#counts.set(source, (this.#counts.get(source) ?? 0) + 1);
    return {
      get evicted() {
        return place.evicted;
      },
      spoke: () => {
        place.silent = false;
      },
      leave: () => this.#release(place),
    };
  }

  #evictOne(): void {
    let first: Place[] = [];
    for (const place of this.#held) {
      const order = first.length === 0 ? -1 : this.#compare(place, first[0]!);
      if (order < 0) first = [place];
      else if (order === 0) first.push(place);
    }
    const victim = first[0]!.silent ? first[0]! : first[Math.floor(this.#random() * first.length)]!;
    this.#release(victim);
    victim.evicted = true;
    victim.evict();
  }

  /** Below 0 where `place` is to go before `other`, whatever their ages. */
  #compare(place: Place, other: Place): number {
    const difference = this.#excess(other) - this.#excess(place);
    return difference === 0 ? Number(other.silent) - Number(place.silent) : difference;
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

/**
 * The source that an address counts for: the address itself, of IPv6 the network of 64 bits, which one machine has to
 * itself.
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
