// A thread that opens MPI in addition to the main thread of its process, reports its rank and size, awaits a message
// that never arrives, and, if requested, sends a message that is never received.
import { parentPort, workerData } from "node:worker_threads";
import { openMpi } from "../src/node.ts";
import { sharedBytes } from "./operands.ts";

const { underWay, peer } = workerData as { underWay: boolean; peer: number };
const world = await openMpi();
void world.requests.post({ kind: "receive", output: sharedBytes(64), count: 64, peer, tag: 3 });
const large = sharedBytes(2 ** 22); // Large, so that MPI has not copied it.
if (underWay)
  void world.requests.post({
    kind: "send",
    input: large,
    count: large.byteLength,
    peer: world.rank,
    tag: 4,
    communicator: 0,
  });
parentPort!.postMessage({ rank: world.rank, size: world.size });
parentPort!.on("message", () => undefined); // Runs until it is terminated.
