import { describe, expect, test } from "vitest";
import type { CollectiveRequest, Communicator } from "../communicator.ts";
import { allReduce, raggedAllGather, raggedAllToAll, type RaggedResult, sendReceive } from "../functions/collective.ts";
import type { Graph } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { scheduleCollectives } from "../passes/schedule-collectives.ts";
import { byteLength, type TensorSpec } from "../shape.ts";
import { beginCollective, type CollectivePlan, planCollective } from "./collective-plan.ts";

const f32 = (...shape: number[]): TensorSpec => ({ dtype: "f32", shape });
const i32 = (...shape: number[]): TensorSpec => ({ dtype: "i32", shape });

/** Returns the plan of the first collective of a function. */
const planned = (
  fn: (...inputs: Tensor[]) => Tensor | RaggedResult,
  inputs: readonly TensorSpec[],
  worldSize: number,
): CollectivePlan => {
  const { graph } = trace(fn as (...args: readonly unknown[]) => unknown, inputs as never, {
    mesh: { data: worldSize },
  }) as {
    graph: Graph;
  };
  const scheduled = scheduleCollectives(graph);
  return planCollective(scheduled, scheduled.nodes.find(({ op }) => op === "collective-start")!);
};

const started: CollectiveRequest[] = [];
const group = (rank: number, worldSize: number): Communicator => ({
  rank,
  worldSize,
  start: (request) => ({ id: started.push(request) }),
  wait: () => undefined,
  bytesSent: () => 0,
  members: Array.from({ length: worldSize }, (_, other) => other),
  exchangeTexts: () => {
    throw new Error("nobody compiles here");
  },
  split: (_, name) => {
    throw new Error(`no group ${name}`);
  },
});
const bytesOf = (...numbers: number[]): Uint8Array => new Uint8Array(Int32Array.from(numbers).buffer);
const floats = (...numbers: number[]): Uint8Array => new Uint8Array(Float32Array.from(numbers).buffer);
const toFloats = (bytes: Uint8Array): number[] => [...new Float32Array(bytes.slice().buffer)];
const toInts = (bytes: Uint8Array): number[] => [...new Int32Array(bytes.slice().buffer)];

test("a ragged collective is the plain one with its row counts", () => {
  const toAll = planned((x, rows) => raggedAllToAll(x!, rows!, "data", { priority: 3 }), [f32(6, 5), i32(3)], 3);
  expect(toAll).toEqual({
    axis: "data",
    axisSize: 3,
    inputBytes: [120, 12],
    outputBytes: [120, 12],
    capacity: 2,
    request: { kind: "all-to-all", dtype: "f32", priority: 3 },
  });
  const gather = planned((x, rows) => raggedAllGather(x!, rows!, "data"), [f32(2, 5), i32()], 3);
  expect(gather).toEqual({
    axis: "data",
    axisSize: 3,
    inputBytes: [40, 4],
    outputBytes: [120, 12],
    capacity: 2,
    request: { kind: "all-gather", dtype: "f32" },
  });
  const [x, rows, output, receivedRows] = [new Uint8Array(40), bytesOf(2), new Uint8Array(120), new Uint8Array(12)];
  beginCollective(gather, [x, rows], [output, receivedRows], { data: group(1, 3) });
  expect(started.at(-1)).toEqual({
    kind: "all-gather",
    dtype: "f32",
    input: x,
    output,
    ragged: { capacity: 2, rows, receivedRows },
  });
  expect(started.at(-1)!.ragged!.rows, "the region itself").toBe(rows);
});

test("requests without row counts or priority have neither", () => {
  const plan = planned((x) => sendReceive(x!, "data", [[0, 1]]), [f32(2)], 2);
  beginCollective(plan, [new Uint8Array(8)], [new Uint8Array(8)], { data: group(0, 2) });
  expect(started.at(-1)).toEqual({
    kind: "send-receive",
    dtype: "f32",
    to: 1,
    input: new Uint8Array(8),
    output: new Uint8Array(8),
  });
  expect(planned((x) => allReduce(x!, "data", "max", { priority: 0 }), [f32(2)], 2).request).toEqual({
    kind: "all-reduce",
    dtype: "f32",
    reduction: "max",
    priority: 0,
  });
});

describe.each([
  ["all-to-all", (x: Tensor, rows: Tensor) => raggedAllToAll(x, rows, "data"), (worldSize: number) => worldSize],
  ["all-gather", (x: Tensor, rows: Tensor) => raggedAllGather(x, rows, "data"), () => 1],
] as const)("ragged %s", (kind, fn, chunks) => {
  const plan = (worldSize: number, capacity: number, width = 2): CollectivePlan =>
    planned(
      (x, rows) => fn(x!, rows!),
      [f32(chunks(worldSize) * capacity, width), i32(...(kind === "all-to-all" ? [worldSize] : []))],
      worldSize,
    );
  const buffers = ({ outputBytes }: CollectivePlan): Uint8Array[] =>
    outputBytes.map((bytes) => new Uint8Array(bytes).fill(0x55));

  test.each([-1, 4, 2 ** 31 - 1])(
    "a count of %i for chunks of 3 rows is rejected before anything is started",
    (count) => {
      const before = started.length;
      const counts = new Array<number>(chunks(4)).fill(3);
      counts[chunks(4) - 1] = count;
      const receiver = kind === "all-to-all" ? " to rank 3" : "";
      const made = plan(4, 3);
      expect(() =>
        beginCollective(made, [new Uint8Array(made.inputBytes[0]!), bytesOf(...counts)], buffers(made), {
          data: group(2, 4),
        }),
      ).toThrow(
        `${kind}: rank 2 is asked to send ${count} rows${receiver}, but its chunks have 3; count 0 to 3 rows, or raise the capacity`,
      );
      const alone = plan(1, 3);
      const outputs = buffers(alone);
      expect(() => beginCollective(alone, [new Uint8Array(24), bytesOf(count)], outputs, {})).toThrow(
        `rank 0 is asked to send ${count} rows`,
      );
      expect(outputs, "nothing is written").toEqual(buffers(alone));
      expect(started.length).toBe(before);
    },
  );

  test("on an axis of one rank returns the counted rows, and zeros", () => {
    const made = plan(1, 3);
    for (const [count, wanted] of [
      [0, [0, 0, 0, 0, 0, 0]],
      [2, [1, 2, 3, 4, 0, 0]],
      [3, [1, 2, 3, 4, 5, 6]],
    ] as const) {
      const [output, received] = buffers(made) as [Uint8Array, Uint8Array];
      const input = floats(1, 2, 3, 4, 5, 6);
      expect(beginCollective(made, [input, bytesOf(count)], [output, received], {})).toBeUndefined();
      expect([toFloats(output), toInts(received)]).toEqual([wanted, [count]]);
      expect(toFloats(input)).toEqual([1, 2, 3, 4, 5, 6]);
    }
  });

  test("chunks without capacity, and rows without elements", () => {
    for (const [capacity, width, count] of [
      [0, 2, 0],
      [3, 0, 2],
    ] as const) {
      const made = plan(1, capacity, width);
      const outputs = buffers(made);
      beginCollective(made, [new Uint8Array(0), bytesOf(count)], outputs, {});
      expect(toInts(outputs[1]!)).toEqual([count]);
      expect(made.outputBytes).toEqual([byteLength(f32(0)), 4]);
    }
  });
});
