import { encodeBounded, type Loss, reportCodec } from "./control-messages.ts";
import { BufferedEmitter } from "./buffered-emitter.ts";
import { checkJoinOptions, type JoinOptions, type Member } from "./member.ts";
import { checkLost } from "../ranks.ts";
import { failureOf, type RendezvousThreadEvent, RendezvousThread } from "./rendezvous-thread.ts";

/**
 * Join the rendezvous of a job, and wait until every rank has. Dials again while the coordinator is not there yet. The
 * connection lives in a thread of its own, so this one may be busy: only when its event loop has not turned for the
 * coordinator's `heartbeat.stuckMilliseconds` are its ranks lost to the others.
 *
 * With a `signal` it can be given up until all have joined: within a second, with a RendezvousError
 * `rendezvous-stopped`; where this process had a place, all others end, too.
 *
 * @throws JoinRefusedError when the coordinator will not have this process, PlaceTakenError when it has no place for it
 * until the deadline; PeerIdentityError when one of both does not prove who it is; RendezvousError when nobody answers,
 * when ranks are missing at the deadline (it names them), or when the coordinator dies; WireError when what answers is
 * no coordinator of this version.
 * @example const member = await joinRendezvous({ address, ranks: [1], addresses: [{ host: "10.0.0.2", port: 4711 }],
 * worldSize: 2, job, build, secret }); member.onLost(({ ranks, reason }) => abort(ranks, reason));
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
        loss.resolve(event.loss); // the first stands
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
        break; // a coordinator's
    }
  };
  const thread = new RendezvousThread({ role: "member", options: rest }, take);
  const giveUp = (): void => thread.tell({ type: "give up" });
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
      thread.tell({ type: "lost", rank, reason });
    },
    onLost: (listener) => void loss.promise.then(listener),
    close: () => {
      over = true;
      return thread.close();
    },
  };
};
