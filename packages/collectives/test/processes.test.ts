import { type ChildProcess, spawn } from "node:child_process";
import { bytesPerElement } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { ethernetLinks } from "../src/index.ts";
import { hostRendezvous, randomSecret, type ProcessWorldOptions } from "../src/node.ts";
import type { Answer, Request, Job } from "./rank-worker.ts";
import { closedForm, fromBytes, operand, parametersOf, raggedAnswer, regionElements } from "./world.ts";

/**
 * Runs a job on processes, with one thread per rank.
 *
 * @param during called when all ranks are connected.
 */
const runProcesses = async (
  processes: readonly (readonly number[])[],
  job: Job,
  during: (children: readonly ChildProcess[]) => void = () => undefined,
  settings: readonly Pick<ProcessWorldOptions, "preference" | "facts">[] = [],
): Promise<(Answer | undefined)[]> => {
  const worldSize = processes.flat().length;
  const secret = randomSecret();
  const coordinator = await hostRendezvous({ worldSize, job: "test", build: "1", secret });
  const answers: (Answer | undefined)[] = Array.from({ length: worldSize });
  const children = processes.map((ranks, i) =>
    spawn(
      process.execPath,
      [
        "--no-memory-protection-keys",
        new URL("./process-rank.ts", import.meta.url).pathname,
        JSON.stringify({ address: coordinator.address, secret, ranks, worldSize, job, ...settings[i] }),
      ],
      { stdio: ["ignore", "inherit", "inherit"] },
    ),
  );
  const exits = children.map((child) => new Promise<void>((resolve) => child.once("exit", () => resolve())));
  try {
    await coordinator.ready;
    await new Promise<void>((resolve) => {
      const connected = new Set<number>();
      const living = (): number[] =>
        processes.flatMap((ranks, i) =>
          children[i]!.exitCode === null && children[i]!.signalCode === null ? ranks : [],
        );
      const check = (): void => {
        if (living().every((rank) => answers[rank] !== undefined)) resolve();
      };
      coordinator.onMessage(({ message }) => {
        const said = message as
          | { readonly connected: readonly number[] }
          | { readonly rank: number; readonly answer: Answer };
        if ("answer" in said) {
          answers[said.rank] = said.answer;
          return check();
        }
        for (const rank of said.connected) connected.add(rank);
        if (connected.size === worldSize) during(children);
      });
      for (const child of children) child.once("exit", check);
    });
  } finally {
    coordinator.broadcast("end");
    await Promise.all(exits);
    await coordinator.close();
  }
  children.forEach(({ exitCode, signalCode }, i) => {
    if (exitCode !== 0 && signalCode !== "SIGKILL")
      throw new Error(
        `the process of ranks ${processes[i]!.join(", ")} ended by itself: ${signalCode ?? `exit code ${exitCode}`}`,
      );
  });
  return answers;
};

for (const { worlds, tags } of [
  { worlds: [[[0], [1, 2], [3]]], tags: [] },
  {
    worlds: [
      [[0], [1]],
      [
        [0, 1],
        [2, 3],
      ],
    ],
    tags: ["full"],
  },
])
  describe.each(worlds.map((processes) => ({ processes })))(
    "ranks in processes $processes",
    { tags },
    ({ processes }) => {
      test("ragged collectives transfer the actual rows", async () => {
        const worldSize = processes.flat().length;
        const answers = await runProcesses(processes, { name: "ragged", capacity: 70, rowElements: 100 });
        answers.forEach((answer, rank) => {
          expect(answer?.error).toBeUndefined();
          const numbers = answer!.outputs.map((bytes, i) =>
            fromBytes(Uint8Array.from(bytes), i % 2 === 0 ? "f32" : "i32"),
          );
          expect(numbers).toEqual(raggedAnswer(rank, worldSize, 70, 100));
        });
      });

      test("several requests in flight equal the closed form", async () => {
        const worldSize = processes.flat().length;
        const requests: Request[] = [
          { kind: "all-reduce", n: 100_003, inPlace: true },
          { kind: "all-gather", n: 7, dtype: "u8" },
          { kind: "barrier", n: 0 },
          { kind: "all-reduce", n: 501, dtype: "i32", reduction: "max", priority: 2 },
          { kind: "reduce-scatter", n: 33 },
          { kind: "all-to-all", n: 12, dtype: "f16", priority: 3 },
          { kind: "broadcast", n: 100, root: worldSize - 1, inPlace: true },
          { kind: "send-receive", n: 5, priority: 2 },
          { kind: "reduce", n: 30_001, root: worldSize - 1, inPlace: true, priority: 1 },
          { kind: "reduce", n: 16_385, root: 0, priority: 1 },
          { kind: "reduce", n: 501, root: worldSize >> 1, dtype: "bf16" },
          { kind: "all-reduce", n: 19, dtype: "bf16" },
        ];
        const answers = await runProcesses(processes, { name: "requests", requests, startAllFirst: true, repeats: 3 });
        expect(answers.map((answer) => answer?.error?.message)).toEqual(answers.map(() => undefined));
        requests.forEach(({ kind, n, dtype = "f32", reduction, root }, i) => {
          const inputs = answers.map((_, rank) => operand(rank, regionElements(kind, worldSize, n).input, dtype));
          answers.forEach((answer, rank) => {
            const bytes = Uint8Array.from(answer!.outputs[i]!);
            expect(bytes.byteLength % bytesPerElement[dtype]).toBe(0);
            expect(fromBytes(bytes, dtype), `${kind} on rank ${rank}`).toEqual(
              closedForm(kind, parametersOf(rank, worldSize, n, root), inputs, reduction),
            );
          });
        });
      });
    },
  );

test("all other processes detect kill -9 of a process without waiting for a timeout, and name its rank", async () => {
  const answers = await runProcesses(
    [[0], [1], [2]],
    { name: "die", how: "wait" },
    (children) => void children[2]!.kill("SIGKILL"),
  );
  expect(answers[2]).toBeUndefined();
  for (const answer of answers.slice(0, 2)) {
    expect(answer?.error?.code).toBe("peer-lost"); // a timeout would give "collective-timeout"
    expect(answer?.error?.message).toMatch(/rank 2 was lost during (agreement #1|barrier #1|all-reduce #2)/);
    expect(answer?.error?.peer).toBe(2);
  }
});

describe("processes with different settings are rejected at the start, by name", () => {
  const slower = { ...ethernetLinks, reduceSecondsPerByte: 1e-9 };
  test.each<[string, readonly Pick<ProcessWorldOptions, "preference" | "facts">[], RegExp]>([
    [
      "link files",
      [{ preference: { link: ethernetLinks } }, { preference: { link: slower } }],
      /^link times: rank 2 has those of a link file, .*1e-9.*, rank 0 has those of a link file, .*; all ranks must have the same/,
    ],
    [
      "summation orders",
      [{}, { preference: { order: "any" } }],
      /^order of sums: rank 2 has any, rank 0 has rank; .* give every process the same job file/,
    ],
    [
      "builds of the kernels",
      [{ facts: { kernels: "relaxed" } }, { facts: { kernels: "scalar" } }],
      /^kernels: rank 2 has scalar, rank 0 has relaxed; .* the same kind of host/,
    ],
  ])("%s", async (_, settings, message) => {
    const answers = await runProcesses(
      [[0, 1], [2]],
      { name: "requests", requests: [{ kind: "barrier", n: 0 }], startAllFirst: true },
      undefined,
      settings,
    );
    for (const answer of answers) {
      expect(answer?.error?.code).toBe("ranks-differ");
      expect(answer?.error?.message).toMatch(message);
    }
  });
});
