import { createReadStream } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { askForHistograms, takeRequest } from "../histograms/histogram-request.ts";
import { readHistograms } from "../histograms/read-histograms.ts";
import { checkpointHistograms } from "./checkpoint-histograms.ts";
import { encodeRows } from "./encode-rows.ts";
import type { PageAssets } from "./page-assets.ts";
import { readSamples } from "./read-samples.ts";
import { runDetails } from "./run-details.ts";
import type { RunFacts } from "./run-facts.ts";
import { listTraces } from "./run-files.ts";
import { mostTraceBytes } from "./trace-bytes.ts";
import type { WatchedRuns } from "./watched-runs.ts";

export interface WatchServer {
  /** Of the page, with a slash at the end. */
  readonly url: string;
  close(): Promise<void>;
}

export interface WatchServerInput {
  readonly runs: WatchedRuns;
  readonly assets: PageAssets;
  /** 0: one that is free. */
  readonly port: number;
  /** Between looks at runs that are being written, milliseconds. Default: 250. */
  readonly lookEvery?: number;
  /** Between searches for runs, milliseconds. Default: 2000. */
  readonly findEvery?: number;
}

const loopback = "127.0.0.1";
const histogramsAddress = "/api/histograms";
const nothingHere = "there is nothing here";

const securityHeaders: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/** Runs that were written to so lately are looked at often, milliseconds. */
const livelyFor = 120_000;

const refuse = (response: ServerResponse, status: number, text: string): void => {
  response.writeHead(status, { ...securityHeaders, "Content-Type": "text/plain; charset=utf-8" });
  response.end(`${text}\n`);
};

const sendJson = (response: ServerResponse, value: unknown): void => {
  response.writeHead(200, { ...securityHeaders, "Content-Type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(value));
};

/** `step:12,evaluation:3`: what a page has, by type; each type is written as in addresses. */
const parseKnown = (text: string | null): Map<string, number> =>
  new Map(
    (text ?? "").split(",").flatMap((part) => {
      const [, type, count] = /^(.+):(\d{1,12})$/.exec(part) ?? [];
      try {
        return type === undefined ? [] : [[decodeURIComponent(type), Number(count)] as const];
      } catch {
        return [];
      }
    }),
  );

/** Tells open pages what has changed. */
class Listeners {
  private readonly responses = new Set<ServerResponse>();
  private number = 0;

  add(response: ServerResponse, runs: readonly RunFacts[]): void {
    response.writeHead(200, { ...securityHeaders, "Content-Type": "text/event-stream; charset=utf-8" });
    response.write("retry: 1000\n\n");
    this.responses.add(response);
    response.on("close", () => this.responses.delete(response));
    this.write(response, "all", { runs });
  }

  tell(changes: { readonly runs: readonly RunFacts[]; readonly gone: readonly string[] }): void {
    if (changes.runs.length === 0 && changes.gone.length === 0) return;
    for (const response of this.responses) {
      // One that reads nothing any more is cut off, and asks anew when it wakes up.
      if (response.writableLength > 2 ** 22) response.destroy();
      else this.write(response, "changed", changes);
    }
  }

  /** A word now and then shows a broken connection to both ends. */
  beat(): void {
    for (const response of this.responses) response.write(": still here\n\n");
  }

  private write(response: ServerResponse, event: string, value: unknown): void {
    response.write(`id: ${++this.number}\nevent: ${event}\ndata: ${JSON.stringify(value)}\n\n`);
  }

  end(): void {
    for (const response of this.responses) response.end();
  }
}

/**
 * Serve the page of the runs below a folder on this machine's loopback address, to nobody else: a name that leads here
 * from elsewhere (DNS rebinding) is refused by the Host header, and nothing but GET is answered, except that the page
 * itself, which is known by the Origin header, may ask a run for histograms. Runs are named by ids that were found on
 * disk; no path of a request is ever opened.
 */
export const serveWatch = async ({
  runs,
  assets,
  port,
  lookEvery = 250,
  findEvery = 2000,
}: WatchServerInput): Promise<WatchServer> => {
  const listeners = new Listeners();
  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => {
      if (response.headersSent) response.destroy();
      else refuse(response, 500, error.message);
    });
  });
  let hosts: ReadonlySet<string> = new Set();
  const first = Promise.withResolvers<void>();

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!hosts.has(request.headers.host ?? "")) return refuse(response, 403, "this page is for this machine only");
    if (request.method === "POST" && URL.parse(`http://localhost${request.url}`)?.pathname === histogramsAddress) {
      request.resume(); // whatever it says beside its address
      // Pages of others can send here, too; a browser then says where they come from.
      if (!hosts.has(request.headers.origin?.replace(/^http:\/\//, "") ?? ""))
        return refuse(response, 403, "only the page of this server may ask");
      return ask(request.url!, response);
    }
    if (request.method !== "GET") {
      response.setHeader("Allow", "GET");
      return refuse(response, 405, "nothing but GET is answered");
    }
    const address = URL.parse(`http://localhost${request.url ?? "/"}`);
    if (address === null) return refuse(response, 404, nothingHere);
    const { pathname, searchParams } = address;
    const asset = assets.get(pathname);
    if (asset !== undefined) {
      response.writeHead(200, { ...securityHeaders, "Content-Type": asset.type });
      response.end(asset.content);
      return;
    }
    if (pathname === "/api/events") {
      await first.promise; // a page begins with all runs
      return listeners.add(response, runs.facts);
    }
    const id = searchParams.get("run") ?? "";
    const tail = pathname.startsWith("/api/") ? await runs.tailOf(id) : undefined;
    if (tail === undefined) return refuse(response, 404, nothingHere);
    const folder = runs.folderOf(id)!;
    switch (pathname) {
      case "/api/rows": {
        const { generation, table } = tail;
        const known =
          Number(searchParams.get("generation")) === generation ? parseKnown(searchParams.get("known")) : new Map();
        const parts = encodeRows(table, generation, known);
        response.writeHead(200, { ...securityHeaders, "Content-Type": "application/octet-stream" });
        for (const part of parts) response.write(part);
        response.end();
        return;
      }
      case "/api/trace": {
        // A name is compared with those that lie there, and no path is made of what a request says.
        const trace = (await listTraces(folder)).find(({ name }) => name === searchParams.get("name"));
        if (trace === undefined) return refuse(response, 404, nothingHere);
        if (trace.bytes > mostTraceBytes)
          return refuse(response, 413, `${trace.name} has ${trace.bytes} bytes, and a page reads ${mostTraceBytes}`);
        response.writeHead(200, { ...securityHeaders, "Content-Type": "application/json; charset=utf-8" });
        return pipeline(createReadStream(join(folder, trace.name)), response);
      }
      case histogramsAddress: {
        const step = searchParams.get("step");
        return sendJson(response, readHistograms(folder, step === null ? undefined : Number(step)));
      }
      case "/api/samples":
        return sendJson(response, await readSamples(folder));
      case "/api/run":
        return sendJson(response, await runDetails(folder, runs.filesOf(id)!));
      default:
        return refuse(response, 404, nothingHere);
    }
  };

  /** One at a time of each run: whoever asks meanwhile gets the same. */
  const counting = new Map<string, ReturnType<typeof checkpointHistograms>>();

  /** Ask a run for histograms; of one that is over, the weights of its newest checkpoint are the answer. */
  const ask = async (url: string, response: ServerResponse): Promise<void> => {
    const id = URL.parse(`http://localhost${url}`)?.searchParams.get("run") ?? "";
    if ((await runs.tailOf(id)) === undefined) return refuse(response, 404, nothingHere);
    const folder = runs.folderOf(id)!;
    try {
      if (runs.factsOf(id)?.state === "running") {
        askForHistograms(folder);
        if ((await runs.factsNow(id))?.state === "running") {
          response.writeHead(202, { ...securityHeaders, "Content-Type": "text/plain; charset=utf-8" });
          response.end("asked\n");
          return;
        }
        takeRequest(folder); // it has ended since somebody looked
      }
      const counted =
        counting.get(id) ??
        checkpointHistograms(folder).finally(() => {
          counting.delete(id);
        });
      counting.set(id, counted);
      return sendJson(response, await counted);
    } catch (error) {
      return refuse(response, 409, (error as Error).message);
    }
  };

  const ownPort = await listen(server, port);
  hosts = new Set([`${loopback}:${ownPort}`, `localhost:${ownPort}`]);
  let closed = false;
  let [lastFound, lastBeat] = [-Infinity, performance.now()];
  let timer: NodeJS.Timeout | undefined;
  const round = async (): Promise<void> => {
    const now = performance.now();
    const isSearch = now - lastFound >= findEvery;
    const gone = isSearch ? await runs.find() : [];
    if (isSearch) lastFound = now;
    if (now - lastBeat > 15_000) {
      listeners.beat();
      lastBeat = now;
    }
    const lively = new Set(
      runs.facts.filter(({ writtenAt }) => Date.now() - writtenAt < livelyFor).map(({ id }) => id),
    );
    listeners.tell({ runs: [], gone });
    for (const id of runs.ids) {
      if (closed) return;
      if (!isSearch && !lively.has(id)) continue;
      const facts = await runs.look(id);
      if (facts !== undefined) listeners.tell({ runs: [facts], gone: [] });
    }
  };
  const loop = (): void => {
    round()
      .catch((error: Error) => process.stderr.write(`watch: ${error.message}\n`))
      .finally(() => {
        first.resolve();
        if (!closed) timer = setTimeout(loop, lookEvery);
      });
  };
  loop();
  return {
    url: `http://${loopback}:${ownPort}/`,
    close: async () => {
      closed = true;
      clearTimeout(timer);
      listeners.end();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
};

const listen = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, loopback, () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
