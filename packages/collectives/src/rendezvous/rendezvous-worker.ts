import { parentPort, workerData } from "node:worker_threads";
import { openCoordinator } from "./coordinator.ts";
import { defaultHeartbeat } from "../failure-detection/heartbeat.ts";
import { type JoinOptions, openMember } from "./member.ts";
import { postedError } from "./posted-error.ts";
import { pulseReader } from "../failure-detection/pulse.ts";
import type { RendezvousThreadEvent, RendezvousThreadCommand, RendezvousTask } from "./rendezvous-thread.ts";

// Entry point of the thread that owns a process's control connections, started by `hostRendezvous` and
// `joinRendezvous`.

const post = (event: RendezvousThreadEvent): void => parentPort!.postMessage(event);
const task = workerData as RendezvousTask;
const { intervalMilliseconds } = defaultHeartbeat;
// The pulse is read at least one time per interval, in addition to the reads for pings. A longer gap means that this
// thread was stopped.
const idle = pulseReader(task.beats, 2 * intervalMilliseconds);
setInterval(idle, intervalMilliseconds).unref();
const ended = (): void => {
  post({ type: "closed" });
  parentPort!.close();
};
const fail = (error: unknown): void => post({ type: "failed", error: postedError(error) });

const serveCoordinator = async ({ options }: Extract<RendezvousTask, { role: "coordinator" }>): Promise<void> => {
  const coordinator = await openCoordinator({ ...options, onEvent: (event) => post({ type: "event", event }) }, idle);
  parentPort!.on("message", (command: RendezvousThreadCommand) => {
    if (command.type === "relay") coordinator.relay(command.payload, command.process);
    else if (command.type === "lost") coordinator.reportLost(command.rank, command.reason);
    else if (command.type === "close") void coordinator.close(command.stopped).then(ended);
  });
  coordinator.onGone((process) => post({ type: "gone", process }));
  coordinator.onLost((loss) => post({ type: "lost", loss }));
  post({ type: "listening", address: coordinator.address });
  coordinator.ready.then((roster) => {
    post({ type: "joined", roster, process: -1 });
    coordinator.onMessage((message) => post({ type: "message", message }));
  }, fail);
};

const serveMember = async ({ options }: Extract<RendezvousTask, { role: "member" }>): Promise<void> => {
  const givenUp = new AbortController();
  const giveUp = ({ type }: RendezvousThreadCommand): void => {
    if (type === "give up") givenUp.abort();
  };
  parentPort!.on("message", giveUp);
  const listeners: Pick<JoinOptions, "onNote" | "onWaiting"> = {
    onNote: (line) => post({ type: "note", line }),
    onWaiting: (line) => post({ type: "waiting", line }),
  };
  const member = await openMember({ ...options, ...listeners, signal: givenUp.signal }, idle);
  parentPort!.off("message", giveUp);
  parentPort!.on("message", (command: RendezvousThreadCommand) => {
    if (command.type === "relay") member.relay(command.payload);
    else if (command.type === "lost") member.reportLost(command.rank, command.reason);
    else if (command.type === "close") void member.close().then(ended);
  });
  void member.ended.then(() => post({ type: "gone", process: member.process }));
  member.onLost((loss) => post({ type: "lost", loss }));
  post({ type: "joined", roster: member.roster, process: member.process });
  member.onMessage((message) => post({ type: "message", message }));
};

(task.role === "coordinator" ? serveCoordinator(task) : serveMember(task)).catch((error: unknown) => {
  fail(error);
  ended();
});
