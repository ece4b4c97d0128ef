import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { makeAuthority } from "../../test/network-certificates.ts";
import { tlsClientOptions, tlsServerOptions } from "./tls-identity.ts";

test("both ends prefer the fastest secure cipher, and support a peer with another", async () => {
  const authority = makeAuthority();
  const server = createServer(tlsServerOptions(authority.issue(["skein:rank:0"])), (socket) => socket.end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const cipherOf = async (ciphers?: string): Promise<string> => {
    const own = tlsClientOptions(authority.issue(["skein:rank:1"]), { rank: 0 });
    const socket: TLSSocket = connect({ ...own, ...(ciphers !== undefined && { ciphers }), host: "127.0.0.1", port });
    await once(socket, "secureConnect");
    const { name } = socket.getCipher();
    socket.destroy();
    return name;
  };
  expect(await cipherOf()).toBe("TLS_AES_128_GCM_SHA256");
  expect(await cipherOf("TLS_AES_256_GCM_SHA384")).toBe("TLS_AES_256_GCM_SHA384"); // A peer of an older version.
  server.close();
});
