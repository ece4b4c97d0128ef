import { parentPort, workerData } from "node:worker_threads";
import { FolderSearch, readRun } from "@skein/run-files/node";
import { threadIsReady } from "../src/deadline-thread.ts";
import type { LoaderRequest, SearchAnswer } from "../src/loader-thread.ts";

// Thread that reads runs like the real loader, except that a folder named "stuck" blocks the thread forever, and a
// folder named "fallen" ends it.

let last: Promise<void> = Promise.resolve();
parentPort!.on("message", (request: LoaderRequest) => {
  last = last.then(async () => {
    if (request.kind === "search") {
      const runs = [...new FolderSearch(workerData as string).sweep()].flatMap((run) => run ?? []);
      parentPort!.postMessage({ runs, isWhole: true, milliseconds: 0 } satisfies SearchAnswer);
      return;
    }
    if (request.run.folder.endsWith("fallen")) throw new Error("fallen");
    if (request.run.folder.endsWith("stuck")) for (let number = 0; ; number++) JSON.parse(`{"a":${number}}`);
    parentPort!.postMessage(await readRun(request.run));
  });
});
parentPort!.postMessage(threadIsReady);
