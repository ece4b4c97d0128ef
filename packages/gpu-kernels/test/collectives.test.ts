import { createCpuBackend } from "@skein/cpu-kernels";
import {
  add,
  allGather,
  allReduce,
  allToAll,
  axisIndex,
  type Backend,
  broadcastFromRoot,
  broadcastTo,
  cast,
  elementCount,
  equal,
  full,
  type Communicator,
  iota,
  jit,
  multiply,
  type NdArray,
  raggedAllGather,
  raggedAllToAll,
  type RaggedResult,
  reduceMeanToRoot,
  reduceScatter,
  reduceToRoot,
  scope,
  sendReceive,
  softmax,
  type Span,
  SpanRecorder,
  type Tensor,
  trace,
  vjp,
  where,
} from "@skein/tensor-core";
import {
  type CollectiveHandle,
  type CollectiveRequest,
  interpretWorld,
  type ReferenceArray,
} from "@skein/tensor-core/backend";
import { firstDifference, normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DeviceLostError, type HostMemory, type WebGpuBackend } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

const worldSize = 2;

const inOrder = ({ x, rows }: RaggedResult): readonly Tensor[] => [x, rows];

/**
 * State that all ranks of one thread share. The n-th requests of all ranks form a collective, which is computed when
 * the last rank's request arrives.
 */
class LocalCollectives {
  private readonly requests = new Map<number, CollectiveRequest[]>();
  private readonly done = new Map<number, PromiseWithResolvers<void>>();

  finished(id: number): PromiseWithResolvers<void> {
    let promise = this.done.get(id);
    if (promise === undefined) this.done.set(id, (promise = Promise.withResolvers<void>()));
    return promise;
  }

  bring(id: number, rank: number, request: CollectiveRequest): void {
    const all = this.requests.get(id) ?? [];
    all[rank] = request;
    this.requests.set(id, all);
    if (all.filter(Boolean).length < worldSize) return;
    const inputs = all.map(({ input }) => input.slice());
    all.forEach((one, own) => {
      if (one.ragged === undefined) one.output.set(resultOf(one, own, inputs));
      else exchangeRows(all, own);
    });
    setTimeout(() => this.finished(id).resolve(), 1);
  }
}

const floats = (bytes: Uint8Array): Float32Array => new Float32Array(bytes.slice().buffer);

const resultOf = (
  { kind, reduction, root = 0, from, output }: CollectiveRequest,
  rank: number,
  inputs: readonly Uint8Array[],
): Uint8Array => {
  const fold = (): Uint8Array => {
    const [a, b] = inputs.map(floats) as [Float32Array, Float32Array];
    return new Uint8Array(a.map((value, i) => (reduction === "max" ? Math.max(value, b[i]!) : value + b[i]!)).buffer);
  };
  const chunk = (bytes: Uint8Array, i: number): Uint8Array =>
    bytes.slice((i * bytes.length) / worldSize, ((i + 1) * bytes.length) / worldSize);
  const joined = (parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]));
  if (kind === "all-reduce") return fold();
  if (kind === "reduce") return rank === root ? fold() : new Uint8Array(output.length);
  if (kind === "reduce-scatter") return chunk(fold(), rank);
  if (kind === "all-gather") return joined(inputs);
  if (kind === "all-to-all") return joined(inputs.map((input) => chunk(input, rank)));
  if (kind === "broadcast") return inputs[root]!;
  return from === undefined ? new Uint8Array(output.length) : inputs[from]!;
};

/** Copies as many rows as their senders specify, followed by zeros, and writes the numbers of rows. */
const exchangeRows = (all: readonly CollectiveRequest[], rank: number): void => {
  const { output, ragged } = all[rank]!;
  const chunkBytes = output.length / worldSize;
  output.fill(0);
  const received = all.map((sender, from) => {
    const chunk = sender.kind === "all-to-all" ? rank : 0;
    const rows = new Int32Array(sender.ragged!.rows.slice().buffer)[chunk]!;
    const begin = chunk * chunkBytes;
    output.set(sender.input.subarray(begin, begin + (rows * chunkBytes) / ragged!.capacity), from * chunkBytes);
    return rows;
  });
  ragged!.receivedRows.set(new Uint8Array(Int32Array.from(received).buffer));
};

/** Throws, because a mesh with one axis is never split. */
const split = (): never => {
  throw new Error("these tests split no group");
};

const communicatorOf = (collectives: LocalCollectives, rank: number): Communicator => {
  let next = 0;
  return {
    rank,
    worldSize,
    start: (request): CollectiveHandle => {
      const id = next++;
      collectives.bring(id, rank, request);
      return { id };
    },
    wait: ({ id }) => collectives.finished(id).promise,
    bytesSent: () => 0,
    members: [0, 1],
    exchangeTexts: (text) => [text, text], // all ranks compile the same graph
    split,
  };
};

/** Host memory that counts allocations that have not been released. */
class CountedMemory implements HostMemory {
  held = 0;
  allocate(bytes: number): Uint8Array {
    this.held += bytes;
    return new Uint8Array(bytes).fill(0x55);
  }
  release(bytes: Uint8Array): void {
    this.held -= bytes.byteLength;
  }
}

describe.skipIf(!hasAdapter)("collectives of a graph on WebGPU", () => {
  const memories = [new CountedMemory(), new CountedMemory()];
  let backends: WebGpuBackend[];
  beforeAll(async () => {
    backends = await Promise.all(memories.map((hostMemory) => openBackend({ hostMemory })));
  });
  afterAll(() => backends.forEach((backend) => backend.close()));

  const toReference = (array: NdArray): ReferenceArray => ({
    spec: { dtype: array.dtype, shape: array.shape },
    data: Float64Array.from(array.toNumbers()),
  });

  /** Runs `fn` on both ranks concurrently and compares every output with the reference for all ranks. */
  const check = async (fn: (x: Tensor) => readonly Tensor[], inputs: readonly NdArray[], runs = 1): Promise<void> => {
    const { graph } = trace(fn, [inputs[0]] as never, { mesh: { data: worldSize } });
    const expected = interpretWorld(
      graph,
      inputs.map((input) => [toReference(input)]),
    );
    const collectives = new LocalCollectives();
    await Promise.all(
      backends.map(async (backend, rank) => {
        const f = jit(fn, backend, { communicators: { data: communicatorOf(collectives, rank) } });
        for (let run = 0; run < runs; run++) {
          const outputs = await f(inputs[rank]! as never);
          for (const [i, output] of (outputs as never[]).entries()) {
            const difference = firstDifference((await backend.download(output)).toNumbers(), expected[rank]![i]!.data, {
              absolute: 1e-5,
              relative: 1e-5,
            });
            expect(difference, `rank ${rank}, run ${run}, output ${i}`).toBeUndefined();
            backend.free(output);
          }
        }
        f.release();
      }),
    );
    expect(memories.map(({ held }) => held)).toEqual([0, 0]);
  };

  const inputs = [normalArray([4, 6], 1), normalArray([4, 6], 2)];

  test.each([
    ["all-reduce", (x: Tensor) => [allReduce(add(x, 1), "data")]],
    ["all-reduce, largest", (x: Tensor) => [allReduce(x, "data", "max")]],
    ["reduce-scatter", (x: Tensor) => [multiply(reduceScatter(x, "data"), 2)]],
    ["all-gather", (x: Tensor) => [multiply(allGather(x, "data"), 2)]],
    ["all-to-all", (x: Tensor) => [allToAll(x, "data")]],
    ["broadcast", (x: Tensor) => [broadcastFromRoot(x, "data", 1)]],
    ["reduce", (x: Tensor) => [reduceMeanToRoot(add(x, 1), "data", 1), reduceToRoot(x, "data")]],
    ["send and receive", (x: Tensor) => [sendReceive(x, "data", [[1, 0]])]],
    ["the rank's number", (x: Tensor) => [multiply(x, cast(axisIndex("data"), "f32"))]],
  ])("%s", async (_, fn) => {
    await check(fn, inputs);
  });

  /**
   * Returns row counts of each rank, computed on the device: rank r sends r + 1 rows to itself, and none to the other
   * rank.
   */
  const ownRows = (): Tensor =>
    where(equal(iota([worldSize], "i32", { dim: 0 }), axisIndex("data")), add(axisIndex("data"), 1), 0);

  test.each([
    [
      "all-to-all",
      (x: Tensor) => {
        const there = raggedAllToAll(multiply(x, 2), ownRows(), "data");
        const back = raggedAllToAll(multiply(there.x, 3), there.rows, "data");
        return [there.x, there.rows, add(back.x, 1), back.rows];
      },
    ],
    [
      "all-gather",
      (x: Tensor) => {
        const { x: rows, rows: counts } = raggedAllGather(add(x, 1), multiply(axisIndex("data"), 3), "data");
        return [multiply(rows, 2), add(counts, 1)];
      },
    ],
    [
      "gradients of both",
      (x: Tensor) => [
        vjp(
          (y: Tensor) =>
            raggedAllToAll(raggedAllGather(y, full([], 3, "i32"), "data").x, full([worldSize], 2, "i32"), "data").x,
          x,
        ).pullback(broadcastTo(iota([2 * x.shape[0]!, 1], "f32", { dim: 0 }), [2 * x.shape[0]!, x.shape[1]!])),
      ],
    ],
  ] as const)("ragged %s, run after run", async (_, fn) => {
    await check(fn, inputs, 3);
  });

  test("a row count beyond the capacity rejects the run, and names the rank", async () => {
    const [backend] = backends as [WebGpuBackend];
    const f = jit((x: Tensor) => raggedAllToAll(x, add(axisIndex("data"), full([1], 5, "i32")), "data").x, backend);
    await expect(f(inputs[0]! as never)).rejects.toThrow(
      /all-to-all: rank 0 is asked to send 5 rows, but its chunks have 4/,
    );
    expect(memories.map(({ held }) => held)).toEqual([0, 0]);
    f.release();
  });

  test("on an axis of one rank, ragged collectives need no communicator", async () => {
    const [backend] = backends as [WebGpuBackend];
    const f = jit((x: Tensor) => inOrder(raggedAllGather(x, full([], 3, "i32"), "data")), backend);
    const [x, rows] = await f(inputs[0]! as never);
    const own = inputs[0]!.toNumbers();
    expect((await backend.download(x!)).toNumbers()).toEqual(own.map((value, i) => (i < 18 ? value : 0)));
    expect((await backend.download(rows!)).toNumbers()).toEqual([3]);
    for (const array of [x!, rows!]) backend.free(array);
    f.release();
  });

  test("several at once, while other work continues, run after run", async () => {
    await check(
      (x) => {
        const a = allReduce(multiply(x, 2), "data");
        const b = allGather(add(x, 3), "data");
        const between = multiply(add(x, x), x);
        return [add(a, between), b, allReduce(add(between, a), "data")];
      },
      inputs,
      5,
    );
  });

  /**
   * Computes two exchanges that can be in progress at the same time, with computations before, between and after the
   * exchanges.
   */
  const overlapping = (x: Tensor): readonly Tensor[] => {
    const a = scope("first", () => allReduce(multiply(x, 2), "data"));
    const between = scope("between", () => softmax(multiply(x, x)));
    const b = scope("second", () => allGather(between, "data"));
    return [scope("behind", () => softmax(add(a, between))), b];
  };

  /** Returns a communicator that records each rank's calls, in order. */
  const observed = (
    communicator: Communicator,
    onEvent: (event: string, kind?: CollectiveRequest["kind"]) => void,
  ): Communicator => ({
    ...communicator,
    start: (request) => {
      onEvent("start", request.kind);
      return communicator.start(request);
    },
    wait: (handle) => {
      onEvent("wait");
      return communicator.wait(handle);
    },
  });

  test("passes all submitted collectives to communicators before the host waits, which may block", async () => {
    const collectives = new LocalCollectives();
    const seen = await Promise.all(
      backends.map(async (backend, rank) => {
        const events: string[] = [];
        const data = observed(communicatorOf(collectives, rank), (event) => events.push(event));
        const f = jit(overlapping, backend, { communicators: { data } });
        for (const output of await f(inputs[rank]! as never)) backend.free(output);
        f.release();
        return events;
      }),
    );
    expect(seen).toEqual(backends.map(() => ["start", "start", "wait", "wait"]));
  });

  test("records spans of collectives from the request to the result, with the names of the CPU backend", async () => {
    /** Returns the spans of rank 0, and the start times of its collectives. */
    const traced = async (
      ranks: readonly Backend[],
    ): Promise<{ spans: readonly Span[]; started: Map<string, number> }> => {
      const collectives = new LocalCollectives();
      const spanSink = new SpanRecorder();
      const started = new Map<string, number>();
      const communicators = ranks.map((_, rank) => communicatorOf(collectives, rank));
      communicators[0] = observed(
        communicators[0]!,
        (event, kind) => kind !== undefined && started.set(kind, spanSink.now()),
      );
      const fs = ranks.map((backend, rank) =>
        jit(overlapping, backend, { communicators: { data: communicators[rank]! }, ...(rank === 0 && { spanSink }) }),
      );
      await Promise.all(
        fs.map(async (f, rank) => {
          for (const output of await f(inputs[rank]! as never)) ranks[rank]!.free(output);
          f.release();
        }),
      );
      return { spans: spanSink.spans, started };
    };
    const [onGpu, onCpu] = [await traced(backends), await traced([await createCpuBackend(), await createCpuBackend()])];
    const communication = ({ spans }: { readonly spans: readonly Span[] }): string[] =>
      spans
        .filter(({ track }) => track === "collectives" || track === "waiting")
        .map(({ name }) => name)
        .sort();
    expect(communication(onGpu)).toEqual(communication(onCpu));
    const named = (name: string): Span => onGpu.spans.find((span) => span.name.startsWith(name))!;
    const end = ({ endSeconds }: Span): number => endSeconds;
    for (const kind of ["all-reduce", "all-gather"]) {
      const [collective, wait] = [named(kind), named(`wait ${kind}`)];
      expect([collective.track, wait.track]).toEqual(["collectives", "waiting"]);
      expect(collective.startSeconds).toBeLessThanOrEqual(onGpu.started.get(kind)!);
      expect(end(collective)).toBeGreaterThan(onGpu.started.get(kind)!);
      expect(end(wait)).toBe(end(collective));
    }
    if (!backends[0]!.facts.timestamps) return;
    // Rounding of device times in seconds. Kernels are timed by the device's clock, and causes must precede effects on
    // the clocks of host and device. Dawn rounds the device's clock down to multiples of 2^16 ns.
    const rounding = 2 ** 16 / 1e9;
    expect(end(named("fused first")) - rounding).toBeLessThanOrEqual(named("all-reduce").startSeconds);
    expect(end(named("softmax between")) - rounding).toBeLessThanOrEqual(named("all-gather").startSeconds);
    expect(named("softmax behind").startSeconds).toBeGreaterThanOrEqual(end(named("all-reduce")));
  });

  test("tensors without elements", async () => {
    await check(
      (x) => [allReduce(multiply(x, 2), "data"), allGather(x, "data")],
      [normalArray([0, 3]), normalArray([0, 3])],
    );
  });

  test("a failed group rejects the run; only memory that a peer may still write is kept", async () => {
    const broken: Communicator = {
      rank: 0,
      worldSize,
      start: () => ({ id: 0 }),
      wait: async () => {
        throw new Error("rank 1 is gone");
      },
      bytesSent: () => 0,
      members: [0, 1],
      exchangeTexts: (text) => [text, text],
      split,
    };
    const [backend] = backends as [WebGpuBackend];
    const x = backend.upload(inputs[0]!);
    const f = jit((y: Tensor) => [allReduce(multiply(y, 2), "data"), allGather(y, "data")], backend, {
      communicators: { data: broken },
    });
    await expect(f(x)).rejects.toThrow("rank 1 is gone");
    const held = backend.bytesInUse();
    await expect(f(x)).rejects.toThrow("rank 1 is gone");
    expect(backend.bytesInUse()).toBe(held);
    // Two requests of each of two runs stay in progress forever, because a failed wait does not end a request: an
    // all-reduce, which works in place, and an all-gather.
    expect(memories[0]!.held).toBe(2 * (1 + 3) * 4 * elementCount(inputs[0]!.shape));
    expect((await backend.download(x)).toNumbers()).toEqual(inputs[0]!.toNumbers());
  });

  test("after a collective that cannot start, no further collective starts, and the run fails with its reason", async () => {
    const started: string[] = [];
    const refusing: Communicator = {
      rank: 0,
      worldSize,
      start: ({ kind }) => {
        started.push(kind);
        throw new Error(`${kind} is refused`);
      },
      wait: () => undefined,
      bytesSent: () => 0,
      members: [0, 1],
      exchangeTexts: (text) => [text, text],
      split,
    };
    const [backend] = backends as [WebGpuBackend];
    const f = jit(overlapping, backend, { communicators: { data: refusing } });
    const held = memories[0]!.held;
    await expect(f(inputs[0]! as never)).rejects.toThrow("all-reduce is refused");
    // A peer would match the second request with the first.
    expect(started).toEqual(["all-reduce"]);
    expect(memories[0]!.held).toBe(held);
  });

  test("losing the device during a collective rejects the run", async () => {
    const backend = await openBackend();
    const gate = Promise.withResolvers<void>();
    const slow: Communicator = {
      rank: 0,
      worldSize,
      start: () => {
        backend.device.gpu.destroy();
        setTimeout(gate.resolve, 20);
        return { id: 0 };
      },
      wait: async () => gate.promise,
      bytesSent: () => 0,
      members: [0, 1],
      exchangeTexts: (text) => [text, text],
      split,
    };
    const f = jit((y: Tensor) => add(allReduce(multiply(y, 2), "data"), 1), backend, { communicators: { data: slow } });
    await expect(f(inputs[0]! as never)).rejects.toThrow(DeviceLostError);
  });
});
