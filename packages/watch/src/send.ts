import { createReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { openRegularFile } from "@skein/collectives/files";

export const securityHeaders: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cache-Control": "no-store",
};

export const refuse = (response: ServerResponse, status: number, text: string): void => {
  response.writeHead(status, { ...securityHeaders, "Content-Type": "text/plain; charset=utf-8" });
  response.end(`${text}\n`);
};

/** Sends chunks as fast as the client reads. Each chunk is created only when the client can receive it. */
export const sendPieces = (
  response: ServerResponse,
  type: string,
  pieces: Iterable<Uint8Array | string>,
): Promise<void> => {
  response.writeHead(200, { ...securityHeaders, "Content-Type": type });
  return pipeline(Readable.from(pieces, { highWaterMark: 1 }), response);
};

const pieceCharacters = 2 ** 16;

const piecesOf = function* (text: string): Generator<Uint8Array, void> {
  for (let at = 0; at < text.length; ) {
    let end = at + pieceCharacters;
    if (/[\uD800-\uDBFF]/.test(text[end - 1] ?? "")) end++; // never split a surrogate pair
    yield Buffer.from(text.slice(at, end));
    at = end;
  }
};

export const sendJson = (response: ServerResponse, text: string): Promise<void> =>
  sendPieces(response, "application/json; charset=utf-8", piecesOf(text));

/** Sends a regular file, at most its first `maxBytes` bytes. @throws Error if the path is not a regular file. */
export const sendFile = (response: ServerResponse, type: string, path: string, maxBytes: number): Promise<void> => {
  const { file } = openRegularFile(path, false);
  response.writeHead(200, { ...securityHeaders, "Content-Type": type });
  return pipeline(createReadStream(path, { fd: file, end: maxBytes - 1 }), response);
};
