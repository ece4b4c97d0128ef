import type { ServerResponse } from "node:http";
import type { RunFacts } from "@skein/run-files/node";
import { securityHeaders } from "./send.ts";

/** Approximate number of characters of an event. The next event is created only when the page has read enough data. */
const eventCharacters = 2 ** 16;

/**
 * Connection to an open page, with the ids of runs to send to the page. Only ids are queued, so that a slow page needs
 * little memory.
 */
class Listener {
  private readonly response: ServerResponse;
  private readonly factsOf: (id: string) => RunFacts | undefined;
  /** Ids of the runs that existed when the page was opened. */
  private readonly first: readonly string[];
  private numSent = 0;
  private hasSentAll = false;
  private readonly changed = new Set<string>();
  private readonly gone = new Set<string>();
  private isFull = false;
  private number = 0;

  constructor(response: ServerResponse, ids: readonly string[], factsOf: (id: string) => RunFacts | undefined) {
    this.response = response;
    this.first = ids;
    this.factsOf = factsOf;
    response.on("drain", () => {
      this.isFull = false;
      this.write();
    });
  }

  tell(changed: Iterable<string>, gone: Iterable<string>): void {
    for (const id of gone) {
      this.changed.delete(id);
      this.gone.add(id);
    }
    for (const id of changed) this.changed.add(id);
    this.write();
  }

  beat(): void {
    if (!this.isFull) this.send(": still here\n\n");
  }

  /** Writes events while the page reads them. */
  write(): void {
    while (!this.isFull && !this.hasSentAll) {
      const runs = this.take(() => this.first[this.numSent++]);
      this.hasSentAll = this.numSent >= this.first.length;
      this.event("all", { runs, isWhole: this.hasSentAll });
    }
    while (!this.isFull && this.gone.size > 0) this.event("changed", { runs: [], gone: this.takeGone() });
    while (!this.isFull && this.changed.size > 0)
      this.event("changed", { runs: this.take(() => firstOf(this.changed)), gone: [] });
  }

  private take(next: () => string | undefined): RunFacts[] {
    const runs: RunFacts[] = [];
    let characters = 0;
    while (characters < eventCharacters) {
      const id = next();
      if (id === undefined) break;
      const facts = this.factsOf(id);
      if (facts === undefined) continue;
      runs.push(facts);
      characters += JSON.stringify(facts).length;
    }
    return runs;
  }

  private takeGone(): string[] {
    const ids: string[] = [];
    for (let characters = 0; characters < eventCharacters && this.gone.size > 0; ) {
      const id = firstOf(this.gone)!;
      ids.push(id);
      characters += id.length;
    }
    return ids;
  }

  private event(name: string, value: unknown): void {
    this.send(`id: ${++this.number}\nevent: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
  }

  private send(text: string): void {
    this.isFull = !this.response.write(text);
  }
}

/** Removes the run id that was added first, and returns this id. */
const firstOf = (ids: Set<string>): string | undefined => {
  for (const id of ids) {
    ids.delete(id);
    return id;
  }
  return undefined;
};

/** Sends changes to open pages, at the rate at which each page reads. */
export class Listeners {
  private readonly responses = new Map<ServerResponse, Listener>();

  /**
   * Adds an open page, which receives the existing runs and then all changes.
   * @param runs Ids of existing runs, in the order in which they are sent.
   */
  add(response: ServerResponse, runs: readonly string[], factsOf: (id: string) => RunFacts | undefined): void {
    response.writeHead(200, { ...securityHeaders, "Content-Type": "text/event-stream; charset=utf-8" });
    response.write("retry: 1000\n\n");
    const listener = new Listener(response, runs, factsOf);
    this.responses.set(response, listener);
    response.on("close", () => this.responses.delete(response));
    listener.write();
  }

  tell(changed: ReadonlySet<string>, gone: readonly string[]): void {
    if (changed.size === 0 && gone.length === 0) return;
    for (const listener of this.responses.values()) listener.tell(changed, gone);
  }

  /** Sends a heartbeat message, with which both ends detect a broken connection. */
  beat(): void {
    for (const listener of this.responses.values()) listener.beat();
  }

  end(): void {
    for (const response of this.responses.keys()) response.end();
  }
}
