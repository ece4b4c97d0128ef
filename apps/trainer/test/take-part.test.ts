import { type Coordinator, hostRendezvous, randomSecret } from "@skein/collectives/node";
import { checkJob } from "@skein/job/node";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { MemberMessage } from "../src/members/control-messages.ts";
import { Interruption } from "../src/processes/interruption.ts";
import { worldOf } from "../src/members/job-world.ts";
import type { MemberWorld } from "../src/members/member-world.ts";
import { type MemberOptions, takePart } from "../src/members/take-part.ts";

const job = checkJob(
  {
    name: "linking",
    ranks: 2,
    transport: "tcp",
    batch: 4,
    steps: 1,
    data: { kind: "mnist" },
    model: { kind: "mlp" },
    optimizer: { kind: "sgd" },
    learningRate: { peak: 0.1 },
  },
  { file: "job.yaml" },
);
const secret = randomSecret();

/** Returns the communication of one process whose links are never connected. */
const unreachable = (rank: number): MemberWorld => ({
  addresses: [{ host: "127.0.0.1", port: 7000 + rank }],
  connect: () => {
    linking.add(rank);
    return new Promise(() => undefined);
  },
  connection: () => {
    throw new Error("no rank begins without links");
  },
  watch: () => undefined,
  reportLost: () => undefined,
  close: async () => void closed.push(rank),
});

let coordinator: Coordinator;
const sentMessages: MemberMessage[] = [];
const closed: number[] = [];
/** Ranks that have joined and are connecting their links. */
const linking = new Set<number>();
/**
 * Waits until `isSo` holds while processes use their sockets, at the speed of the machine. Only the timeout of the test
 * ends the wait.
 */
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise(setImmediate);
};
beforeEach(async () => {
  coordinator = await hostRendezvous({ ...worldOf(job), secret });
  coordinator.onMessage(({ message }) => sentMessages.push(message as MemberMessage));
});
afterEach(async () => {
  await coordinator.close();
  sentMessages.splice(0);
  closed.splice(0);
  linking.clear();
});

const partOf = (rank: number, more: Partial<MemberOptions> = {}): ReturnType<typeof takePart> =>
  takePart({
    job,
    ranks: [rank],
    openWorld: () => Promise.resolve(unreachable(rank)),
    rendezvous: () => Promise.resolve({ address: coordinator.address, secret }),
    ...more,
  });

test("while links are made, a process that is asked to end tells the controller and leaves; the controller's message ends the other", async () => {
  const interruption = new Interruption();
  const asked = partOf(1, { interruption });
  const other = partOf(0);
  await until(() => linking.size === 2);
  expect(interruption.endsAtOnce).toBe(true);
  interruption.request();
  await expect(asked).rejects.toMatchObject({
    code: "interrupted",
    message: "rank 1 was asked to end before ranks had begun; nothing was trained",
  });
  await until(() => sentMessages.some(({ type }) => type === "interrupt"));
  coordinator.broadcast({ type: "end", ending: "stopped" });
  expect(await other).toBe("stopped");
  expect(closed).toEqual([1, 0]);
});

test("slow links are reported locally and to the controller, with both ranks and the address", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const over = new AbortController();
    const lines: string[] = [];
    const parts = [
      partOf(0, { signal: over.signal }),
      partOf(1, { signal: over.signal, onWaiting: (line) => lines.push(line) }),
    ];
    for (const part of parts) part.catch(() => undefined);
    // Joining uses real sockets, so the fake clock must wait; otherwise a busy machine would reach the timeouts of
    // joining.
    await until(() => linking.size === 2);
    await vi.advanceTimersByTimeAsync(3000);
    const line = "rank 1: still connecting to rank 0 at 127.0.0.1:7000; unreachable ranks are reported after 60 s";
    expect(lines).toEqual([line]);
    await until(() => sentMessages.some((message) => message.type === "rank" && message.rank === 1));
    expect(sentMessages).toContainEqual({ type: "rank", rank: 1, message: { type: "remark", text: line } });
    over.abort();
    for (const part of parts) await expect(part).rejects.toMatchObject({ code: "interrupted" });
  } finally {
    vi.useRealTimers();
  }
});
