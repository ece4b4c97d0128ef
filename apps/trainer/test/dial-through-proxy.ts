import { X509Certificate } from "node:crypto";
import { appendFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import tls from "node:tls";

// Preloaded in each thread of a run, for tests. Data links connect to the proxy on port SKEIN_TEST_PROXY, which finds
// the target port in the dialed address (127.1.x.y). The presented certificates are written to SKEIN_TEST_DIALLED.

interface Dialled {
  host: string;
  port: number;
  readonly cert: string;
  readonly onread?: unknown;
}

const { SKEIN_TEST_PROXY: proxy, SKEIN_TEST_DIALLED: dialled } = process.env;
const connect = tls.connect as (options: Dialled) => tls.TLSSocket;
const throughProxy = (options: Dialled): tls.TLSSocket => {
  // a control connection
  if (options.onread === undefined || proxy === undefined || dialled === undefined) return connect(options);
  const socket = connect({ ...options, host: `127.1.${options.port >> 8}.${options.port & 255}`, port: Number(proxy) });
  socket.once("secureConnect", () => {
    const shown = [new X509Certificate(options.cert).serialNumber, socket.getPeerX509Certificate()?.serialNumber];
    appendFileSync(dialled, `${shown.join(" ")}\n`);
  });
  return socket;
};
Object.assign(tls, { connect: throughProxy });
syncBuiltinESMExports();
