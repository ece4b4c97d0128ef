import { encodeBounded, type Loss, reportCodec } from "./control-messages.ts";
import { BufferedEmitter } from "./buffered-emitter.ts";
import { checkJoinOptions, type JoinOptions, type Member } from "./member.ts";
import { checkLost } from "../ranks.ts";
import { failureOf, type RendezvousThreadEvent, RendezvousThread } from "./rendezvous-thread.ts";

/**
 * Joins the rendezvous of a job, and waits until every rank has joined. Dials again while the coordinator is not
 * running yet. The connection runs in a separate thread, so the calling thread may be busy: other processes consider
 * the ranks of this process lost only after the calling thread's event loop has been blocked for the coordinator's
 * `heartbeat.stuckMilliseconds`.
 *
 * Aborting `signal` before all ranks have joined cancels the join within one second, with a RendezvousError
 * `rendezvous-stopped`. If this process was already admitted, all other processes also end.
 *
 * @throws JoinRefusedError if the coordinator refuses this process; JoinUnavailableError if the coordinator has no free
 * slot until the deadline; PeerIdentityError if either side does not prove its identity; RendezvousError if no process
 * responds, if ranks are missing at the deadline (the error names them), or if the coordinator dies; WireError if the
 * responding process is not a coordinator of this version.
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
export const joinRendezvous = async (options: JoinOptions): Promise<Member> => {
  checkJoinOptions(options);
  const { onNote, onWaiting, signal, ...rest } = options;
  const joined = Promise.withResolvers<Extract<RendezvousThreadEvent, { type: "joined" }>>();
  const loss = Promise.withResolvers<Loss>();
  const messages = new BufferedEmitter<unknown>();
  let over = false;
  const take = (event: RendezvousThreadEvent): void => {
    switch (event.type) {
      case "joined":
        joined.resolve(event);
        break;
      case "failed":
        joined.reject(failureOf(event));
        break;
      case "message":
        messages.emit(event.message);
        break;
      case "lost":
        loss.resolve(event.loss); // Only the first loss counts.
        break;
      case "gone":
        over = true;
        break;
      case "note":
        onNote?.(event.line);
        break;
      case "waiting":
        onWaiting?.(event.line);
        break;
      case "listening":
      case "event":
        break; // Events of a coordinator.
    }
  };
  const thread = new RendezvousThread({ role: "member", options: rest }, take);
  const giveUp = (): void => thread.send({ type: "give up" });
  signal?.addEventListener("abort", giveUp);
  if (signal?.aborted === true) giveUp();
  const { roster, process } = await joined.promise.finally(() => signal?.removeEventListener("abort", giveUp));
  thread.release();
  return {
    roster,
    process,
    send: (message) => {
      const payload = encodeBounded(reportCodec, { kind: "message", body: message });
      if (over) return false;
      thread.relay(payload);
      return true;
    },
    onMessage: (listener) => messages.listen(listener),
    reportLost: (rank, reason) => {
      checkLost(rank, options.worldSize);
      thread.send({ type: "lost", rank, reason });
    },
    onLost: (listener) => void loss.promise.then(listener),
    close: () => {
      over = true;
      return thread.close();
    },
  };
};
