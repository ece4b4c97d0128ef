import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { MlflowServer } from "./mlflow-server.ts";

const patience = 10_000;
/** Maximum size of a response in bytes. Responses about a run are much smaller. */
const maxBytes = 2 ** 26;

export interface RequestOptions extends Pick<MlflowServer, "authorization" | "authority"> {
  readonly method: "GET" | "POST";
  /** Request body, sent as JSON. */
  readonly body?: object | undefined;
}

export interface RequestAnswer {
  readonly status: number;
  readonly text: string;
  /** Target URL of a redirect. Absent: the response is not a redirect. */
  readonly location?: string | undefined;
}

/**
 * Sends an HTTP request without following redirects. Does not use `fetch`, because `fetch` does not support a
 * certificate authority for a single server.
 *
 * @throws the system's error, also if the server does not respond within ten seconds.
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
        if ((bytes += piece.length) > maxBytes)
          response.destroy(new Error(`the answer has more than ${maxBytes} bytes`));
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
