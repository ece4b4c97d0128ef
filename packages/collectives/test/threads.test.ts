import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { bytesPerElement } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { algorithms } from "../src/algorithms/table.ts";
import { sentElements } from "../src/schedule.ts";
import { stateWord } from "../src/control-block/layout.ts";
import { createThreadWorld, type ThreadWorldOptions } from "../src/node.ts";
import { inPlaceKinds } from "../src/requests/kind-facts.ts";
import { selectAlgorithm } from "../src/select.ts";
import type { Answer, Request, Job, RankData } from "./rank-worker.ts";
import { closedForm, fromBytes, operand, parametersOf, raggedAnswer, regionElements } from "./world.ts";

/** Runs a job on real threads, one worker per rank. If the worker of a rank fails, its result is the error. */
const runWorld = async (worldSize: number, job: Job, options: Partial<ThreadWorldOptions> = {}): Promise<Answer[]> => {
  const length = 2 ** 20;
  const memory = new WebAssembly.Memory({ initial: (worldSize * length) / 65_536, maximum: 65_536, shared: true });
  const world = createThreadWorld({ worldSize, memory, kernels: "none", timeoutMilliseconds: 30_000, ...options });
  try {
    return await Promise.all(
      Array.from({ length: worldSize }, (_, rank) => {
        const workerData: RankData = { connection: world.connection(rank), job, address: rank * length, length };
        const worker = new Worker(new URL("./rank-worker.ts", import.meta.url), { workerData });
        world.watch(rank, worker);
        return new Promise<Answer>((resolve) => {
          worker.once("message", resolve);
          worker.once("error", (error: Error) =>
            resolve({ outputs: [], bytesSent: 0, error: { code: "died", message: error.message, peer: rank } }),
          );
        });
      }),
    );
  } finally {
    await world.close();
  }
};

/** Number of repetitions of the same requests. */
const repeats = examples(8, 30);

for (const { worldSizes, tags } of [
  { worldSizes: [2, 5], tags: [] },
  { worldSizes: [1, 3], tags: ["full"] },
])
  describe.each(worldSizes)("%i thread ranks", { tags }, (worldSize) => {
    test("every algorithm equals the closed form", async () => {
      const runs = algorithms.flatMap(({ name, kind }) =>
        [0, 1, worldSize - 1, worldSize, 1009].flatMap((n) =>
          (inPlaceKinds.has(kind) ? [true, false] : [false]).map((inPlace) => ({ algorithm: name, n, inPlace })),
        ),
      );
      const answers = await runWorld(worldSize, { name: "algorithms", runs });
      expect(answers.map(({ error }) => error?.message)).toEqual(answers.map(() => undefined));
      runs.forEach(({ algorithm, n }, i) => {
        const { kind } = algorithms.find(({ name }) => name === algorithm)!;
        const inputs = answers.map((_, rank) => operand(rank, regionElements(kind, worldSize, n).input, "f32"));
        answers.forEach(({ outputs }, rank) => {
          expect(fromBytes(outputs[i]!, "f32"), `${algorithm} of ${n} on rank ${rank}`).toEqual(
            closedForm(kind, parametersOf(rank, worldSize, n), inputs),
          );
        });
      });
    });

    test("ragged collectives move only the valid rows", async () => {
      const [capacity, rowElements] = [5, 3];
      const answers = await runWorld(worldSize, { name: "ragged", capacity, rowElements });
      answers.forEach(({ outputs, error }, rank) => {
        expect(error).toBeUndefined();
        const numbers = outputs.map((bytes, i) => fromBytes(bytes, i % 2 === 0 ? "f32" : "i32"));
        expect(numbers).toEqual(raggedAnswer(rank, worldSize, capacity, rowElements));
      });
    });

    test.each([true, false])(
      "several requests may be in flight; all started before the first wait: %s",
      async (startAllFirst) => {
        const requests: Request[] = [
          { kind: "all-reduce", n: 1003, inPlace: true },
          { kind: "all-gather", n: 7, dtype: "u8" },
          { kind: "barrier", n: 0 },
          { kind: "all-reduce", n: 501, dtype: "i32", reduction: "max", priority: 2 },
          { kind: "reduce-scatter", n: 33 },
          { kind: "all-to-all", n: 12, dtype: "f16", priority: 3 },
          { kind: "all-reduce", n: 9, awaited: true },
          { kind: "all-reduce", n: Math.floor(4096 / Math.max(worldSize - 1, 1)), awaited: true, inPlace: true },
          { kind: "all-reduce", n: Math.floor(4096 / Math.max(worldSize - 1, 1)) + 1, awaited: true },
          { kind: "all-gather", n: 33, dtype: "bf16", awaited: true },
          { kind: "broadcast", n: 100, root: worldSize - 1, inPlace: true },
          { kind: "send-receive", n: 5, priority: 2 },
          { kind: "reduce", n: 6007, root: worldSize - 1, inPlace: true, priority: 1 },
          { kind: "reduce", n: 6007, root: 0, priority: 1 },
          { kind: "reduce", n: 100, root: worldSize >> 1, dtype: "i32", awaited: true },
          { kind: "reduce", n: 0, root: 0 },
          { kind: "reduce", n: Math.floor(4096 / Math.max(worldSize - 1, 1)), root: 0, awaited: true, inPlace: true },
          { kind: "reduce", n: Math.floor(4096 / Math.max(worldSize - 1, 1)) + 1, root: 0, awaited: true },
          { kind: "all-reduce", n: 19, dtype: "bf16" },
        ];
        const answers = await runWorld(worldSize, { name: "requests", requests, startAllFirst, repeats });
        expect(answers.map(({ error }) => error?.message)).toEqual(answers.map(() => undefined));
        requests.forEach(({ kind, n, dtype = "f32", reduction, root }, i) => {
          const inputs = answers.map((_, rank) => operand(rank, regionElements(kind, worldSize, n).input, dtype));
          answers.forEach(({ outputs }, rank) => {
            expect(fromBytes(outputs[i]!, dtype), `${kind} on rank ${rank}`).toEqual(
              closedForm(kind, parametersOf(rank, worldSize, n, root), inputs, reduction),
            );
          });
        });
        answers.forEach(({ bytesSent }, rank) => {
          const perRound = requests.reduce((sum, { kind, n, dtype = "f32", root }) => {
            const { algorithm } = selectAlgorithm({ kind, worldSize, byteLength: n, sharesMemory: true });
            const isExchanged =
              (kind === "all-reduce" || kind === "reduce" || kind === "all-gather" || kind === "barrier") &&
              (worldSize - 1) * n * bytesPerElement[dtype] <= 16_384;
            const elements = isExchanged
              ? kind === "reduce"
                ? Number(rank !== root) * n
                : (worldSize - 1) * n
              : sentElements(algorithm.schedule(parametersOf(rank, worldSize, n, root)));
            return sum + elements * bytesPerElement[dtype];
          }, 0);
          expect(bytesSent).toBe(repeats * perRound);
        });
      },
    );
  });

test("two ranks send half of the vector in each direction and back: 2·(P − 1)/P·S bytes", async () => {
  const answers = await runWorld(2, {
    name: "requests",
    requests: [{ kind: "all-reduce", n: 1000, inPlace: true }],
    startAllFirst: true,
  });
  expect(answers.map(({ bytesSent }) => bytesSent)).toEqual([4000, 4000]);
});

test("small requests need no extra memory in a world that cannot grow", async () => {
  const memory = new WebAssembly.Memory({ initial: 32, maximum: 32, shared: true }); // Only the inputs and outputs.
  const requests: Request[] = [
    { kind: "barrier", n: 0 },
    { kind: "all-reduce", n: 1000 },
    { kind: "all-gather", n: 7, awaited: true },
  ];
  const answers = await runWorld(2, { name: "requests", requests, startAllFirst: false }, { memory });
  expect(answers.map(({ error }) => error?.message)).toEqual([undefined, undefined]);
  requests.forEach(({ kind, n }, i) => {
    const inputs = [0, 1].map((rank) => operand(rank, regionElements(kind, 2, n).input, "f32"));
    for (const [rank, { outputs }] of answers.entries())
      expect(fromBytes(outputs[i]!, "f32")).toEqual(closedForm(kind, parametersOf(rank, 2, n), inputs));
  });
});

test("a wait returns at once if the request ends during its check", async () => {
  const requests: Request[] = Array.from({ length: 9 }, () => ({ kind: "barrier", n: 0 }));
  const answers = await runWorld(
    1,
    { name: "requests", requests, startAllFirst: true, repeats: 5000 },
    { timeoutMilliseconds: 2000 },
  );
  expect(answers.map(({ error }) => error?.message)).toEqual([undefined]);
});

test("requests of groups along two axes may be in flight at once", async () => {
  const partitions = [
    [
      [0, 1],
      [2, 3],
    ],
    [
      [2, 0],
      [1, 3],
    ],
  ];
  const answers = await runWorld(4, { name: "groups", partitions, n: 300 });
  expect(answers.map(({ error }) => error?.message)).toEqual([undefined, undefined, undefined, undefined]);
  answers.forEach(({ outputs }, rank) => {
    const sums = partitions.flatMap((partition) => {
      const part = partition.find((members) => members.includes(rank))!;
      return [0, 1].map((round) => part.reduce((sum, member) => sum + 2 ** member + round, 0));
    });
    expect(outputs.map((bytes) => new Set(fromBytes(bytes, "f32")))).toEqual(sums.map((sum) => new Set([sum])));
  });
});

test("a group has the same number on all ranks, even if some ranks have split more often", async () => {
  const answers = await runWorld(4, { name: "split twice" });
  expect(answers.map(({ error }) => error?.message)).toEqual([undefined, undefined, undefined, undefined]);
  answers.forEach(({ outputs }, rank) => {
    const part = [0, 1, 2, 3].filter((other) => other % 2 === rank % 2);
    expect(fromBytes(outputs[0]!, "f32")).toEqual(
      closedForm(
        "all-reduce",
        parametersOf(0, 2, 5),
        part.map((member) => operand(member, 5, "f32")),
      ),
    );
  });
});

test.each([[[0, 0, 0]], [[29, 3, 0]], [[0, 30, 2]], [[0, 5000, 70_000]]])(
  "every rank gets the texts of all ranks, of %j letters, and they do not count as bytes sent",
  async (lengths) => {
    const answers = await runWorld(3, { name: "exchange texts", lengths });
    for (const { outputs, bytesSent, error } of answers) {
      expect(error).toBeUndefined();
      expect(outputs.map((bytes) => new TextDecoder().decode(bytes))).toEqual(
        lengths.map((length, rank) => "é".repeat(length) + rank),
      );
      expect(bytesSent).toBe(0);
    }
  },
);

test("urgent requests overtake a request in flight", async () => {
  const [large, small] = [200_000, 20];
  const answers = await runWorld(2, { name: "priorities", large, small });
  for (const { outputs, error } of answers) {
    expect(error).toBeUndefined();
    expect(fromBytes(outputs[0]!, "f32")).toEqual(
      closedForm(
        "all-reduce",
        parametersOf(0, 2, large),
        [0, 1].map((rank) => operand(rank, large, "f32")),
      ),
    );
    const once = closedForm(
      "all-reduce",
      parametersOf(0, 2, 16),
      [0, 1].map((rank) => operand(rank, 16, "f32")),
    );
    expect(fromBytes(outputs[1]!, "f32")).toEqual(once.map((value) => value * 2 ** (small - 1)));
  }
});

test("more requests than the queue holds are executed", async () => {
  const answers = await runWorld(3, { name: "full queue", count: 1000 });
  for (const { outputs } of answers)
    expect(fromBytes(outputs[0]!, "i32")).toEqual(Array.from({ length: 1000 }, () => 6));
});

describe("failures are typed, name the rank, and leave the group unusable", () => {
  test("a rank that never joins", async () => {
    const answers = await runWorld(3, { name: "die", how: "never start" }, { timeoutMilliseconds: 3000 });
    for (const { error } of answers.slice(0, 2)) {
      expect(error?.code).toBe("collective-timeout");
      expect(error?.message).toMatch(/rank 2 did not join all-reduce #2 within 3000 ms/);
      expect(error?.peer).toBe(2);
    }
  });

  test("a rank whose thread dies is named long before the timeout", async () => {
    const answers = await runWorld(3, { name: "die", how: "throw" });
    expect(answers[2]!.error?.code).toBe("died");
    for (const { error } of answers.slice(0, 2)) {
      expect(error?.code).toBe("peer-lost");
      expect(error?.message).toMatch(/rank 2 was lost during (barrier #1|all-reduce #2): its thread ended/);
    }
  });

  test("two failures at once: the second returns only after the first was recorded", async () => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const world = createThreadWorld({ worldSize: 1, memory, kernels: "none" });
    const connection = world.connection(0);
    const state = new Int32Array(connection.control);
    const report = new TextEncoder().encode(
      '{"cause":"lost","peer":0,"rank":0,"collective":"","text":"as found first"}',
    );
    state[stateWord.claimed] = 1; // Like a thread that has begun to record a failure.
    const workerData: RankData = { connection, job: { name: "fail second" }, address: 0, length: 0 };
    const answer = once(new Worker(new URL("./rank-worker.ts", import.meta.url), { workerData }), "message");
    await new Promise((resolve) => setTimeout(resolve, 500));
    new Uint8Array(connection.control).set(report, 4 * stateWord.record);
    state[stateWord.recordLength] = report.length;
    Atomics.store(state, stateWord.failed, 1);
    Atomics.notify(state, stateWord.failed);
    expect((await answer)[0]).toEqual({ outputs: [Uint8Array.of(1)], bytesSent: 0 });
    await world.close();
  });

  test("ranks that split a group differently", async () => {
    const answers = await runWorld(3, { name: "split", name0: "data", name1: "tensor" });
    for (const { error } of answers) {
      expect(error?.code).toBe("ranks-disagree");
      expect(error?.message).toMatch(
        /rank 1 splits the group into "tensor" \[\[0,1,2\]\], rank 0 into "data" \[\[0,1,2\]\]/,
      );
    }
  });

  // Small sums use exchanges, and all other requests use schedules. Each rank must detect the request of the other
  // rank.
  const sum: Request = { kind: "all-reduce", n: 8, inPlace: true };
  test.each<[string, boolean, Request]>([
    ["size", true, { ...sum, n: 9 }],
    ["size that uses another algorithm", false, { ...sum, n: 9000 }],
    ["reduction", true, { ...sum, reduction: "max" }],
    ["dtype", false, { ...sum, dtype: "i32" }],
    ["exchange", true, { kind: "barrier", n: 0 }],
    ["collective, whose data are due from it", true, { kind: "broadcast", n: 8, root: 1 }],
    ["collective, whose data are due from the others", false, { kind: "broadcast", n: 8, root: 0 }],
    ["collective of all", true, { kind: "reduce-scatter", n: 8 }],
    ["reduce", false, { kind: "reduce", n: 8, root: 1 }],
  ])("a rank that starts another %s", async (_, awaited, last) => {
    const job = { name: "disagree", one: { ...sum, awaited }, last: { ...last, awaited } } as const;
    const answers = await runWorld(2, job, { timeoutMilliseconds: 20_000 });
    expect(answers[0]!.error?.code, JSON.stringify(answers.map(({ error }) => error))).toBe("ranks-disagree");
    expect(answers[0]!.error?.message).toMatch(/all ranks must start the same requests/);
    expect(["ranks-disagree", undefined]).toContain(answers[1]!.error?.code);
  });
});

test("ranks that reduce a few elements to two roots get an error", async () => {
  const ask = { kind: "reduce", n: 8, root: 0 } as const;
  const job = { name: "disagree", one: ask, last: { ...ask, root: 1 } } as const;
  const answers = await runWorld(2, job, { timeoutMilliseconds: 20_000 });
  expect(answers.map(({ error }) => error?.code)).toContain("ranks-disagree");
});

test("rejects a module without the reductions", () => {
  const empty = new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0));
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
  expect(() => createThreadWorld({ worldSize: 2, memory, kernels: empty })).toThrow(
    /lacks copyRegion, accumulateSumF32/,
  );
  const own = new WebAssembly.Memory({ initial: 1 });
  expect(() => createThreadWorld({ worldSize: 2, memory: own, kernels: "none" })).toThrow(/shared WebAssembly.Memory/);
});
