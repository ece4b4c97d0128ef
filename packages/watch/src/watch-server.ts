import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { writeStderr } from "@skein/cli/node";
import { maxTraceBytes } from "@skein/run-files";
import { requestHistograms, takeRequest } from "@skein/run-files/node";
import { checkpointHistograms } from "./checkpoint-histograms.ts";
import { encodeRows } from "./encode-rows.ts";
import { Listeners } from "./listeners.ts";
import { LookLoop } from "./look-loop.ts";
import type { PageAssets } from "./page-assets.ts";
import { RunAsks } from "./run-asks.ts";
import type { ListedTrace } from "./run-listings.ts";
import { refuse, securityHeaders, sendFile, sendJson, sendPieces } from "./send.ts";
import type { WatchedRuns } from "./watched-runs.ts";

export interface WatchServer {
  /** URL of the page, with a slash at the end. */
  readonly url: string;
  close(): Promise<void>;
}

export interface WatchServerInput {
  readonly runs: WatchedRuns;
  readonly assets: PageAssets;
  /** Port number; 0: any free port. */
  readonly port: number;
  /** Interval in milliseconds between reads of runs that are being written. Default: 250. */
  readonly lookEvery?: number;
  /** Minimum interval in milliseconds between searches for runs; longer if a search takes long. Default: 2000. */
  readonly findEvery?: number;
  /** Receives lines about failed searches. Default: lines are written to stderr. */
  readonly note?: (line: string) => void;
}

/** Maximum time in milliseconds between messages from the server to an open page. */
const beatEvery = 15_000;

const loopback = "127.0.0.1";
const histogramsAddress = "/api/histograms";
const nothingHere = "there is nothing here";

/** Parses `step:12,evaluation:3`: the number of rows that a page has, by line type. Types are URL-encoded. */
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

/**
 * Serves a page with the runs below a folder, only on the loopback address of this machine. DNS-rebinding requests are
 * rejected based on their Host header. Only GET requests are accepted, except requests for histograms from the page,
 * which the Origin header identifies. Requests identify runs by ids that the server found on disk, so that no path from
 * a request is ever opened.
 */
export const serveWatch = async ({
  runs,
  assets,
  port,
  lookEvery = 250,
  findEvery = 2000,
  note = (line) => writeStderr(`${line}\n`),
}: WatchServerInput): Promise<WatchServer> => {
  const listeners = new Listeners();
  const asks = new RunAsks();
  const closing = new AbortController();
  const server = createServer((request, response) => {
    answer(request, response).catch((error: Error) => {
      if (response.headersSent) response.destroy();
      else refuse(response, 500, error.message);
    });
  });
  let hosts: ReadonlySet<string> = new Set();

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (!hosts.has(request.headers.host ?? "")) return refuse(response, 403, "this page is only for this machine");
    if (request.method === "POST" && URL.parse(`http://localhost${request.url}`)?.pathname === histogramsAddress) {
      request.resume(); // ignore the body
      // Pages of other origins can also send requests to this server; browsers then send the origin of the page.
      if (!hosts.has(request.headers.origin?.replace(/^http:\/\//, "") ?? ""))
        return refuse(response, 403, "only the page of this server may send requests");
      return ask(request.url!, response);
    }
    if (request.method !== "GET") {
      response.setHeader("Allow", "GET");
      return refuse(response, 405, "only GET is answered");
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
      await looks.first; // a page receives all runs first
      if (response.destroyed) return undefined;
      const ids = runs.ids.toSorted((a, b) => runs.writtenAt(b) - runs.writtenAt(a));
      return listeners.add(response, ids, (id) => runs.factsOf(id));
    }
    const id = searchParams.get("run") ?? "";
    const tail = pathname.startsWith("/api/") ? await runs.tailOf(id) : undefined;
    if (tail === undefined) return refuse(response, 404, nothingHere);
    const folder = runs.folderOf(id)!;
    switch (pathname) {
      case "/api/rows": {
        const { generation, table } = tail;
        const isSame = Number(searchParams.get("generation")) === generation;
        const known = isSame ? parseKnown(searchParams.get("known")) : new Map<string, number>();
        const pieces = encodeRows(table, generation, known, () => tail.generation === generation);
        return sendPieces(response, "application/octet-stream", pieces);
      }
      case "/api/trace": {
        // The requested name is compared with existing names, so no path is built from a request.
        const traces = JSON.parse(await asks.answer({ kind: "traces", folder })) as ListedTrace[];
        const trace = traces.find(({ name }) => name === searchParams.get("name"));
        if (trace === undefined) return refuse(response, 404, nothingHere);
        if (trace.bytes > maxTraceBytes)
          return refuse(
            response,
            413,
            `${trace.name} has ${trace.bytes} bytes, but a page reads at most ${maxTraceBytes}`,
          );
        return sendFile(response, "application/json; charset=utf-8", join(folder, trace.name), maxTraceBytes);
      }
      case histogramsAddress: {
        const step = searchParams.get("step");
        return sendJson(
          response,
          await asks.answer({ kind: "histograms", folder, step: step === null ? undefined : Number(step) }),
        );
      }
      case "/api/samples":
        return sendJson(response, await asks.answer({ kind: "samples", folder }));
      case "/api/run":
        return sendJson(response, await asks.answer({ kind: "details", folder }));
      default:
        return refuse(response, 404, nothingHere);
    }
  };

  /** Histogram computations in progress, by run. Concurrent requests for a run share one computation. */
  const counting = new Map<string, ReturnType<typeof checkpointHistograms>>();

  /**
   * Requests histograms from a run. If the run has ended, responds with histograms of the weights in its newest
   * checkpoint.
   */
  const ask = async (url: string, response: ServerResponse): Promise<void> => {
    const id = URL.parse(`http://localhost${url}`)?.searchParams.get("run") ?? "";
    if ((await runs.tailOf(id)) === undefined) return refuse(response, 404, nothingHere);
    const folder = runs.folderOf(id)!;
    try {
      if (runs.factsOf(id)?.state === "running") {
        requestHistograms(folder);
        if ((await runs.factsNow(id))?.state === "running") {
          response.writeHead(202, { ...securityHeaders, "Content-Type": "text/plain; charset=utf-8" });
          response.end("asked\n");
          return;
        }
        takeRequest(folder); // the run has ended since it was last read
      }
      const counted =
        counting.get(id) ??
        checkpointHistograms(folder, closing.signal).finally(() => {
          counting.delete(id);
        });
      counting.set(id, counted);
      return await sendJson(response, JSON.stringify(await counted));
    } catch (error) {
      return refuse(response, 409, (error as Error).message);
    }
  };

  const ownPort = await listen(server, port);
  hosts = new Set([`${loopback}:${ownPort}`, `localhost:${ownPort}`]);
  const looks = new LookLoop({
    runs,
    lookEvery,
    findEvery,
    tell: (changed, gone) => listeners.tell(changed, gone),
    note,
  });
  const beats = setInterval(() => listeners.beat(), beatEvery);
  return {
    url: `http://${loopback}:${ownPort}/`,
    close: async () => {
      looks.close();
      clearInterval(beats);
      closing.abort();
      listeners.end();
      server.closeAllConnections();
      await Promise.all([
        runs.close(),
        asks.close(),
        new Promise<void>((resolve) => {
          server.close(() => resolve());
        }),
      ]);
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
