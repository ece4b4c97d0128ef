import { hostRendezvous } from "../src/rendezvous/host.ts";
import { joinRendezvous } from "../src/rendezvous/join.ts";
import type { Task } from "./rendezvous-child.ts";

// Entry point of a process that hosts or joins a rendezvous: see rendezvous-child.ts.
const task = JSON.parse(process.argv[2]!) as Task;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const stay = (): void => void setInterval(() => {}, 1000);

/** Blocks the thread, like a long system call. */
const block = (milliseconds: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);

if ("host" in task) {
  const coordinator = await hostRendezvous(task.host);
  say(`listening ${coordinator.address.port}`);
  if (task.after !== "forget") stay();
  if (typeof task.after === "object") {
    await coordinator.ready;
    block(task.after.blockMilliseconds);
    coordinator.broadcast("awake");
  }
} else {
  const member = await joinRendezvous(task.join);
  say("complete");
  if (task.after === "leave") await member.close();
  if (task.after === "stay" || typeof task.after === "object") stay();
  if (typeof task.after === "object") {
    block(task.after.blockMilliseconds);
    member.send("awake");
  }
}
