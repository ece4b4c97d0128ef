import { hostRendezvous } from "../src/rendezvous/coordinator.ts";
import { joinRendezvous } from "../src/rendezvous/member.ts";
import type { Task } from "./rendezvous-child.ts";

// Entry of a process that hosts or joins: see rendezvous-child.ts.
const task = JSON.parse(process.argv[2]!) as Task;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

if ("host" in task) {
  const coordinator = await hostRendezvous(task.host);
  say(`listening ${coordinator.address.port}`);
  if (task.after === "stay") setInterval(() => {}, 1000);
} else {
  const member = await joinRendezvous(task.join);
  say("complete");
  if (task.after === "leave") await member.close();
  if (task.after === "stay") setInterval(() => {}, 1000);
}
