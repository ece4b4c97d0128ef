import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isCertificateFault, isTlsFault, tlsReasonOf } from "./tls-fault.ts";

// Response of the server to the next ClientHello.
let answer: Buffer;
const server = createServer((socket) => {
  socket.on("error", () => undefined).once("data", () => socket.end(answer));
});
beforeAll(() => once(server.listen(0, "127.0.0.1"), "listening"));
afterAll(() => void server.close());

const alert = (description: number): Buffer => Buffer.from([0x15, 3, 3, 0, 2, 2, description]); // Alert, RFC 8446 §6.

test.each([
  ["the certificate is missing", alert(116), "certificate"],
  ["the authority is not known", alert(48), "certificate"],
  ["the certificate is expired", alert(45), "certificate"],
  ["the certificate is revoked", alert(44), "certificate"],
  ["a record was altered", alert(20), "bytes"],
  ["the handshake was altered", alert(40), "bytes"],
  ["a handshake message cannot be decoded", alert(50), "bytes"],
  ["its server hello is truncated", Buffer.from([0x16, 3, 3, 0, 5, 2, 0, 0, 1, 0]), "bytes"],
  ["data come before the handshake", Buffer.from([0x17, 3, 3, 0, 3, 1, 2, 3]), "bytes"],
  ["it does not use TLS", Buffer.from("HTTP/1.1 200 OK\r\n\r\n"), "bytes"],
] as const)("%s", async (_, bytes, about) => {
  answer = bytes;
  const socket = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, minVersion: "TLSv1.3" });
  const [error] = (await once(socket, "error").catch((thrown: Error) => [thrown])) as [Error];
  socket.destroy();
  expect([isCertificateFault(error), isTlsFault(error)]).toEqual([about === "certificate", about === "bytes"]);
  expect(tlsReasonOf(error)).toMatch(/^[ -~]{4,60}$/);
});
