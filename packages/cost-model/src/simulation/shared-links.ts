import type { TimeArithmetic } from "./time-arithmetic.ts";

/** Something that transfers. */
export interface Flow<T> {
  /** What it travels over, and how many flows like it travel there. */
  links: readonly { readonly link: number; readonly flows: number }[];
  /** What its transfer still takes, were it alone; as of `since`. */
  left: T;
  since: T;
  /** How many times as long it takes as alone; 0 until it is known. */
  slowdown: number;
  /** Goes up whenever its end is foretold anew. */
  version: number;
}

/**
 * Links that flows share: each flow is as slow as the most loaded of its links makes it. When the number of flows
 * changes, what has been sent stays sent and the rest goes on at the new rate.
 */
export class SharedLinks<T, F extends Flow<T>> {
  private readonly time: TimeArithmetic<T>;
  private readonly slowdownOf: (flows: number) => number;
  private readonly counts: Float64Array;
  private readonly flowsOn: readonly F[][];
  private readonly changed: number[] = [];
  private readonly isChanged: Uint8Array;
  private readonly begun = new Set<F>();

  /** @param slowdownOf how many times as long each of so many flows takes; 1 for one. */
  constructor(numLinks: number, slowdownOf: (flows: number) => number, time: TimeArithmetic<T>) {
    this.time = time;
    this.slowdownOf = slowdownOf;
    this.counts = new Float64Array(numLinks);
    this.flowsOn = Array.from({ length: numLinks }, () => []);
    this.isChanged = new Uint8Array(numLinks);
  }

  begin(flow: F): void {
    this.begun.add(flow);
    for (const { link, flows } of flow.links) {
      this.counts[link]! += flows;
      this.flowsOn[link]!.push(flow);
      this.change(link);
    }
  }

  end(flow: F): void {
    this.begun.delete(flow);
    for (const { link, flows } of flow.links) {
      this.counts[link]! -= flows;
      const on = this.flowsOn[link]!;
      on.splice(on.indexOf(flow), 1);
      this.change(link);
    }
  }

  private change(link: number): void {
    if (this.isChanged[link] === 1) return;
    this.isChanged[link] = 1;
    this.changed.push(link);
  }

  /**
   * Tell the ends of flows whose slowdown is another now. Called once when all that happens at one time has happened: a
   * flow that ends as another begins must not disturb a third by a bit.
   */
  settle(now: T, foretell: (flow: F, endsAt: T) => void): void {
    if (this.changed.length === 0 && this.begun.size === 0) return;
    const affected = new Set(this.begun);
    for (const link of this.changed) {
      this.isChanged[link] = 0;
      for (const flow of this.flowsOn[link]!) affected.add(flow);
    }
    this.changed.length = 0;
    this.begun.clear();
    for (const flow of affected) {
      const slowdown = this.slowdownOf(flow.links.reduce((most, { link }) => Math.max(most, this.counts[link]!), 1));
      if (slowdown === flow.slowdown) continue;
      const { zero, subtract, over, times, add, compare } = this.time;
      if (flow.slowdown > 0) {
        const left = subtract(flow.left, over(subtract(now, flow.since), flow.slowdown));
        flow.left = compare(left, zero) < 0 ? zero : left; // rounding may go below
      }
      flow.since = now;
      flow.slowdown = slowdown;
      flow.version++;
      foretell(flow, add(now, times(flow.left, slowdown)));
    }
  }
}
