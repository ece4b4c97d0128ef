import { type CpuBackend, createCpuBackend, createSharedMemory } from "@skein/cpu-kernels";
import {
  add,
  axisIndex,
  type Communicator,
  jit,
  multiply,
  NdArray,
  raggedAllGather,
  raggedAllToAll,
  sum,
  type Tensor,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";
import {
  type CollectiveHandle,
  type CollectiveRequest,
  interpretWorld,
  type ReferenceArray,
} from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";

const worldSize = 3;
const capacity = 2;
const width = 4;

/**
 * Collectives between ranks in one thread. The n-th requests of all ranks form a collective, which runs when the last
 * rank's request arrives.
 */
class LocalCollectives {
  readonly requests: CollectiveRequest[][] = [];
  private readonly done: PromiseWithResolvers<void>[] = [];

  member(rank: number): Communicator {
    let next = 0;
    return {
      rank,
      worldSize,
      start: (request): CollectiveHandle => {
        const id = next++;
        const all = (this.requests[id] ??= []);
        all[rank] = request;
        this.finished(id);
        if (all.filter(Boolean).length === worldSize) {
          all.forEach((_, to) => exchangeRows(all, to));
          this.finished(id).resolve();
        }
        return { id };
      },
      wait: ({ id }) => this.finished(id).promise,
      bytesSent: () => 0,
      members: Array.from({ length: worldSize }, (_, other) => other),
      exchangeTexts: (text) => Array.from({ length: worldSize }, () => text), // all ranks compile the same graph
      split: (_, name) => {
        throw new Error(`these tests split no group (${name})`);
      },
    };
  }

  private finished(id: number): PromiseWithResolvers<void> {
    return (this.done[id] ??= Promise.withResolvers<void>());
  }
}

const toInts = (bytes: Uint8Array): Int32Array => new Int32Array(bytes.slice().buffer);

const exchangeRows = (all: readonly CollectiveRequest[], to: number): void => {
  const { output, ragged } = all[to]!;
  const chunkBytes = output.length / worldSize;
  output.fill(0);
  const received = all.map(({ kind, input, ragged: own }, from) => {
    const chunk = kind === "all-to-all" ? to : 0;
    const rows = toInts(own!.rows)[chunk]!;
    output.set(
      input.slice(chunk * chunkBytes, chunk * chunkBytes + (rows * chunkBytes) / ragged!.capacity),
      from * chunkBytes,
    );
    return rows;
  });
  ragged!.receivedRows.set(new Uint8Array(Int32Array.from(received).buffer));
};

const backendOf = (): Promise<CpuBackend> => createCpuBackend({ memory: createSharedMemory(64 * 2 ** 20) });
const operand = (rank: number, rows: number): NdArray =>
  NdArray.from(
    Array.from({ length: rows * width }, (_, i) => ((i * 7 + rank * 5) % 13) / 4),
    [rows, width],
  );
const toReference = (array: NdArray): ReferenceArray => ({
  spec: { dtype: array.dtype, shape: array.shape },
  data: Float64Array.from(array.toNumbers()),
});

type Function = (x: Tensor, rows: Tensor) => readonly Tensor[];

/** Runs `fn` on all ranks, several times, and compares every output with the reference for all ranks. */
const check = async (fn: Function, inputs: readonly (readonly [NdArray, NdArray])[]): Promise<LocalCollectives> => {
  const { graph } = trace(fn, inputs[0]! as never, { mesh: { data: worldSize } });
  const expected = interpretWorld(
    graph,
    inputs.map((own) => own.map(toReference)),
  );
  const collectives = new LocalCollectives();
  await Promise.all(
    inputs.map(async (own, rank) => {
      const backend = await backendOf();
      const f = jit(fn, backend, { communicators: { data: collectives.member(rank) } });
      for (let run = 0; run < 3; run++) {
        for (const [i, output] of (await f(...own)).entries()) {
          expect((await backend.download(output)).toNumbers(), `rank ${rank}, run ${run}, output ${i}`).toEqual([
            ...expected[rank]![i]!.data,
          ]);
          backend.free(output);
        }
      }
      f.release();
      expect(backend.arena.bytesInUse).toBe(0);
    }),
  );
  return collectives;
};

describe("ragged collectives of a graph on the CPU", () => {
  const counts = [
    [2, 0, 1],
    [1, 2, 0],
    [0, 1, 2],
  ];
  const inputs = counts.map(
    (own, rank) => [operand(rank, worldSize * capacity), NdArray.from(own, [worldSize], "i32")] as const,
  );

  test("there and back, with work between and gradients through both", async () => {
    const collectives = await check((x, rows) => {
      const [loss, gradient] = valueAndGrad((own: Tensor) => {
        const there = raggedAllToAll(multiply(own, 2), rows, "data");
        const back = raggedAllToAll(add(multiply(there.x, there.x), 1), there.rows, "data", { priority: 2 });
        return sum(multiply(back.x, 0.5));
      })(x);
      return [loss, gradient];
    }, inputs);
    expect(collectives.requests[0]![1]).toMatchObject({ kind: "all-to-all", dtype: "f32", ragged: { capacity } });
    expect(collectives.requests.map(([request]) => request!.priority).slice(0, 4)).toEqual([
      undefined,
      2,
      2,
      undefined,
    ]);
  });

  test("a gather of rows counted on the device, with its counts used as numbers", async () => {
    await check(
      (x) => {
        const all = raggedAllGather(x, axisIndex("data"), "data");
        return [multiply(all.x, 2), add(all.rows, 1), raggedAllGather(all.x, sum(all.rows), "data").x];
      },
      inputs.map((_, rank) => [operand(rank, capacity), NdArray.from([0], [1], "i32")] as const),
    );
  });

  test("no rows at all, and rows without elements", async () => {
    const none = NdArray.zeros("i32", [worldSize]);
    await check(
      (x, rows) => {
        const { x: result, rows: received } = raggedAllToAll(x, rows, "data");
        return [result, received];
      },
      inputs.map(() => [operand(0, 0), none] as const),
    );
    await check(
      (x, rows) => {
        const { x: result, rows: received } = raggedAllToAll(x, rows, "data");
        return [result, received];
      },
      counts.map(
        (own) => [NdArray.zeros("f32", [worldSize * capacity, 0]), NdArray.from(own, [worldSize], "i32")] as const,
      ),
    );
  });

  test.each([-1, 4, 2 ** 31 - 1])(
    "a count of %i fails the run without a request, and the executable stays usable",
    async (count) => {
      const backend = await backendOf();
      const f = jit((x: Tensor, rows: Tensor) => raggedAllToAll(x, rows, "data").x, backend);
      const x = operand(1, 3);
      await expect(f(x, NdArray.from([count], [1], "i32"))).rejects.toMatchObject({
        kind: "user",
        code: "argument",
        message: `all-to-all: rank 0 is asked to send ${count} rows, but its chunks have 3; count 0 to 3 rows, or raise the capacity`,
      });
      // An axis of one rank has no communicator. Rows beyond the count must still be zero.
      const y = await backend.download(await f(x, NdArray.from([2], [1], "i32")));
      expect(y.toNumbers()).toEqual(x.toNumbers().map((value, i) => (i < 2 * width ? value : 0)));
    },
  );
});
