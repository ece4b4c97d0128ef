import type { TimeArithmetic } from "./time-arithmetic.ts";

/** A transfer over shared links. */
export interface Flow<T> {
  /** Links of the flow, each with the number of identical flows on this link. */
  links: readonly { readonly link: number; readonly flows: number }[];
  /** Remaining transfer time without contention, as of `since`. */
  remaining: T;
  since: T;
  /** Current slowdown by contention; 0 if not yet known. */
  slowdown: number;
  /** Incremented whenever the end of the flow is rescheduled. */
  version: number;
}

/**
 * Links shared by flows. Each flow runs at the rate of its most loaded link. If the number of flows changes, the
 * remaining transfer continues at the new rate.
 */
export class SharedLinks<T, F extends Flow<T>> {
  private readonly time: TimeArithmetic<T>;
  private readonly slowdownOf: (flows: number) => number;
  private readonly counts: Float64Array;
  private readonly flowsOn: readonly F[][];
  private readonly changed: number[] = [];
  private readonly isChanged: Uint8Array;
  private readonly started = new Set<F>();

  /** Create links. @param slowdownOf returns the slowdown of each of k concurrent flows; 1 for one flow. */
  constructor(numLinks: number, slowdownOf: (flows: number) => number, time: TimeArithmetic<T>) {
    this.time = time;
    this.slowdownOf = slowdownOf;
    this.counts = new Float64Array(numLinks);
    this.flowsOn = Array.from({ length: numLinks }, () => []);
    this.isChanged = new Uint8Array(numLinks);
  }

  begin(flow: F): void {
    this.started.add(flow);
    for (const { link, flows } of flow.links) {
      this.counts[link]! += flows;
      this.flowsOn[link]!.push(flow);
      this.change(link);
    }
  }

  end(flow: F): void {
    this.started.delete(flow);
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
   * Schedule the ends of flows whose slowdown has changed. Called once after all events of one time, so that a flow
   * that ends while another begins does not change a third flow by rounding.
   */
  settle(now: T, scheduleEnd: (flow: F, endsAt: T) => void): void {
    if (this.changed.length === 0 && this.started.size === 0) return;
    const affected = new Set(this.started);
    for (const link of this.changed) {
      this.isChanged[link] = 0;
      for (const flow of this.flowsOn[link]!) affected.add(flow);
    }
    this.changed.length = 0;
    this.started.clear();
    for (const flow of affected) {
      const slowdown = this.slowdownOf(flow.links.reduce((most, { link }) => Math.max(most, this.counts[link]!), 1));
      if (slowdown === flow.slowdown) continue;
      const { zero, subtract, over, times, add, compare } = this.time;
      if (flow.slowdown > 0) {
        const remaining = subtract(flow.remaining, over(subtract(now, flow.since), flow.slowdown));
        flow.remaining = compare(remaining, zero) < 0 ? zero : remaining; // rounding may give a negative value
      }
      flow.since = now;
      flow.slowdown = slowdown;
      flow.version++;
      scheduleEnd(flow, add(now, times(flow.remaining, slowdown)));
    }
  }
}
