import type { TimeArithmetic } from "./time-arithmetic.ts";

/** A transfer over links that are shared with other flows. */
export interface Flow<T> {
  /** Links of the flow, each with the number of identical flows on this link that the flow represents. */
  links: readonly { readonly link: number; readonly flows: number }[];
  /** Remaining transfer time at time `since`, assuming no contention. */
  remaining: T;
  since: T;
  /** Current slowdown by contention, as a factor; 0 if not known yet. */
  slowdown: number;
  /** Counter that is incremented when the end of the flow is rescheduled, which invalidates earlier events. */
  version: number;
}

/**
 * Links shared by flows. The rate of each flow is the rate on its most loaded link. When the number of flows changes,
 * the remaining transfers continue at the new rate.
 */
export class SharedLinks<T, F extends Flow<T>> {
  private readonly time: TimeArithmetic<T>;
  private readonly slowdownOf: (flows: number) => number;
  private readonly counts: Float64Array;
  private readonly flowsOn: readonly F[][];
  private readonly changed: number[] = [];
  private readonly isChanged: Uint8Array;
  private readonly started = new Set<F>();

  /**
   * Creates links.
   * @param slowdownOf Function that returns the factor by which k concurrent flows are slowed; 1 for a single flow.
   */
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
   * Schedules the ends of flows whose slowdown has changed. Called once per simulated time, after all events of this
   * time. If one flow ends and another flow begins at this time, other flows then keep their exact ends, without
   * rounding errors.
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
        flow.remaining = compare(remaining, zero) < 0 ? zero : remaining; // rounding errors may make the value negative
      }
      flow.since = now;
      flow.slowdown = slowdown;
      flow.version++;
      scheduleEnd(flow, add(now, times(flow.remaining, slowdown)));
    }
  }
}
