import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { MetricTable } from "@skein/run-files";
import type { RunFacts } from "@skein/run-files/node";
import { expect, test } from "vitest";
import { encodeRows } from "./encode-rows.ts";
import { Listeners } from "./listeners.ts";

/** A connection that accepts a limited number of writes until it is drained. */
class SlowResponse extends EventEmitter {
  readonly written: string[] = [];
  private room: number;

  constructor(room: number) {
    super();
    this.room = room;
  }

  writeHead(): void {}

  write(text: string): boolean {
    this.written.push(text);
    return --this.room > 0;
  }

  drain(room: number): void {
    this.room = room;
    this.emit("drain");
  }

  get events(): { readonly name: string; readonly runs: readonly RunFacts[]; readonly gone?: readonly string[] }[] {
    return this.written.flatMap((text) => {
      const [, name, data] = /event: (.*)\ndata: (.*)\n/.exec(text) ?? [];
      return data === undefined ? [] : [{ name: name!, ...(JSON.parse(data) as { runs: RunFacts[] }) }];
    });
  }
}

const facts = new Map<string, RunFacts>();
const open = (room: number, ids: readonly string[]): { response: SlowResponse; listeners: Listeners } => {
  const [response, listeners] = [new SlowResponse(room), new Listeners()];
  listeners.add(response as unknown as ServerResponse, ids, (id) => facts.get(id));
  return { response, listeners };
};
const makeFacts = (count: number, bytes: number): string[] => {
  facts.clear();
  for (let i = 0; i < count; i++)
    facts.set(`run ${i}`, { id: `run ${i}`, step: 0, options: { a: "x".repeat(bytes) } } as unknown as RunFacts);
  return [...facts.keys()];
};

test("a page receives all runs in pieces, each after it has read the previous one", () => {
  const ids = makeFacts(1000, 1000);
  const { response } = open(2, ids);
  expect(response.events).toHaveLength(1);
  for (let i = 0; i < 1000 && response.events.length < 20; i++) {
    const before = response.written.length;
    response.drain(1);
    if (response.written.length === before) break;
    expect(response.written.length).toBe(before + 1);
    expect(response.written.at(-1)!.length).toBeLessThan(70_000);
  }
  const { events } = response;
  expect(events.flatMap(({ runs }) => runs.map(({ id }) => id))).toEqual(ids);
  expect(events.map((event) => (event as unknown as { isWhole: boolean }).isWhole)).toEqual(
    events.map((_, i) => i === events.length - 1),
  );
});

test("a page that reads nothing receives the newest state later, once, and the removed runs", () => {
  const ids = makeFacts(3, 1);
  const { response, listeners } = open(3, ids);
  for (let step = 1; step <= 500; step++) {
    facts.set("run 1", { id: "run 1", step } as unknown as RunFacts);
    listeners.tell(new Set(["run 1"]), []);
  }
  facts.delete("run 2");
  listeners.tell(new Set(), ["run 2"]);
  listeners.beat();
  expect(response.events).toHaveLength(2); // all runs, and the first change
  response.drain(10);
  const [, , ...later] = response.events;
  expect(later).toEqual([
    { name: "changed", runs: [], gone: ["run 2"] },
    { name: "changed", runs: [{ id: "run 1", step: 500 }], gone: [] },
  ]);
});

test("a run that has reappeared is first reported as removed", () => {
  const { response, listeners } = open(2, makeFacts(1, 1));
  listeners.tell(new Set(), ["run 0"]);
  listeners.tell(new Set(["run 0"]), []);
  response.drain(10);
  expect(response.events.slice(1)).toEqual([
    { name: "changed", runs: [], gone: ["run 0"] },
    { name: "changed", runs: [facts.get("run 0")], gone: [] },
  ]);
});

test("rows are created when they are read, and no more of them after they were replaced", () => {
  const table = new MetricTable();
  for (let step = 1; step <= 50_000; step++) table.takeLine(`{"type":"step","step":${step},"loss":${step}}`);
  const { generation } = table;
  const pieces = encodeRows(table, generation, new Map(), () => table.generation === generation);
  expect(pieces.next().value!.length).toBe(2 ** 16);
  table.takeLine('{"type":"step","step":50001,"loss":1}'); // new runs are sent later
  expect(pieces.next().value!.length).toBe(2 ** 16);
  table.takeLine('{"type":"step","step":1}');
  expect(() => [...pieces]).toThrow("rows of the run have been replaced");
});
