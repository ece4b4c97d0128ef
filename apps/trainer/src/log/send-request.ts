import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { MlflowServer } from "./mlflow-server.ts";

const patience = 10_000;
/** What a server tells of a run is far less. */
const mostBytes = 2 ** 26;

export interface RequestOptions extends Pick<MlflowServer, "authorization" | "authority"> {
  readonly method: "GET" | "POST";
  /** Sent as JSON. */
  readonly body?: object | undefined;
}

export interface RequestAnswer {
  readonly status: number;
  readonly text: string;
  /** Where the server sends us instead. */
  readonly location?: string | undefined;
}

/**
 * Ask a server over HTTP, and follow it nowhere else.
 *
 * Own code: `fetch` takes no authority of its own for one server. @throws the system's error where none answers within
 * ten seconds.
 */
export const sendRequest = (
  address: string,
  { method, authorization, authority, body }: RequestOptions,
): Promise<RequestAnswer> =>
  new Promise((resolve, reject) => {
    const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const send = address.startsWith("https:") ? requestHttps : requestHttp;
    const request = send(address, {
      method,
      signal: AbortSignal.timeout(patience),
      ...(authority !== undefined && { ca: authority }),
      headers: {
        ...(authorization !== undefined && { Authorization: authorization }),
        ...(content !== undefined && { "Content-Type": "application/json", "Content-Length": content.length }),
      },
    });
    request.once("error", reject);
    request.once("response", (response) => {
      const pieces: Buffer[] = [];
      let bytes = 0;
      response.on("data", (piece: Buffer) => {
        pieces.push(piece);
        if ((bytes += piece.length) > mostBytes) response.destroy(new Error(`it answers more than ${mostBytes} bytes`));
      });
      response.once("error", reject);
      response.once("end", () => {
        const { statusCode: status = 0, headers } = response;
        const isElsewhere = status >= 300 && status < 400;
        resolve({
          status,
          text: Buffer.concat(pieces).toString("utf8"),
          ...(isElsewhere && headers.location !== undefined && { location: headers.location }),
        });
      });
    });
    request.end(content);
  });
