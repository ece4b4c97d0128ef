import { announcementCodec, encodeBounded, type Loss } from "./control-messages.ts";
import type { Coordinator, MemberMessage } from "./coordinator.ts";
import { checkRendezvousOptions, type RendezvousOptions } from "./coordinator-options.ts";
import { BufferedEmitter } from "./buffered-emitter.ts";
import { checkLost, checkProcess } from "../ranks.ts";
import { failureOf, type RendezvousThreadEvent, RendezvousThread } from "./rendezvous-thread.ts";
import type { RankAddress, Roster } from "./roster.ts";

/**
 * Hosts the rendezvous of a job, in the launcher or in the process of rank 0. Connections run in a separate thread, so
 * the calling thread may be busy: other processes consider the calling thread lost only after its event loop has been
 * blocked for `heartbeat.stuckMilliseconds`.
 *
 * Keeps the process alive only until every rank has joined.
 * @throws ArgumentError, InsecureError, or the system's error if the port is taken.
 * @example
 * ```ts
 * const world = { worldSize: 1, job: "digits", build: "1", secret: randomSecret() }; // equal in all processes
 * const coordinator = await hostRendezvous(world);
 * const addresses = [{ host: "127.0.0.1", port: 40_000 }]; // of this rank's links
 * const member = await joinRendezvous({ ...world, address: coordinator.address, ranks: [0], addresses });
 * console.log(member.roster.length); // 1
 * await member.close();
 * await coordinator.close();
 * ```
 */
export const hostRendezvous = async (options: RendezvousOptions): Promise<Coordinator> => {
  const { onEvent } = checkRendezvousOptions(options);
  const { onEvent: _, ...rest } = options;
  const listening = Promise.withResolvers<RankAddress>();
  const ready = Promise.withResolvers<Roster>();
  ready.promise.catch(() => {}); // Callers that await `ready` get the error; a promise without callers must not end the process.
  const loss = Promise.withResolvers<Loss>();
  const messages = new BufferedEmitter<MemberMessage>();
  const gone = new Set<number>();
  let numProcesses = 0;
  let closed = false;
  const take = (event: RendezvousThreadEvent): void => {
    switch (event.type) {
      case "listening":
        listening.resolve(event.address);
        break;
      case "joined":
        numProcesses = new Set(event.roster.map(({ process }) => process)).size;
        thread.release();
        ready.resolve(event.roster);
        break;
      case "failed":
        thread.release();
        listening.reject(failureOf(event));
        ready.reject(failureOf(event));
        break;
      case "note":
      case "waiting":
        break; // Events of a member.
      case "event":
        onEvent(event.event);
        break;
      case "message":
        messages.emit(event.message as MemberMessage);
        break;
      case "lost":
        loss.resolve(event.loss); // Only the first loss counts.
        break;
      case "gone":
        gone.add(event.process);
        break;
    }
  };
  const thread = new RendezvousThread({ role: "coordinator", options: rest }, take);
  const address = await listening.promise;
  return {
    address,
    ready: ready.promise,
    onMessage: (listener) => messages.listen(listener),
    onLost: (listener) => void loss.promise.then(listener),
    send: (process, message) => {
      const payload = encodeBounded(announcementCodec, { kind: "message", body: message });
      checkProcess(process, numProcesses);
      if (gone.has(process) || closed) return false;
      thread.relay(payload, process);
      return true;
    },
    broadcast: (message) => thread.relay(encodeBounded(announcementCodec, { kind: "message", body: message })),
    reportLost: (rank, reason) => {
      checkLost(rank, options.worldSize);
      thread.send({ type: "lost", rank, reason });
    },
    close: (stopped) => {
      closed = true;
      return thread.close(stopped);
    },
  };
};
