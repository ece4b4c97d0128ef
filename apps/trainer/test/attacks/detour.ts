// Preloaded by Node in each process and thread of an attacked run. Redirects connections to the attacker's port, as a
// compromised switch would. Skein's own code does not know about the redirection.
import { Socket } from "node:net";

const port = Number(process.env["SKEIN_TEST_DETOUR"]);

interface Target {
  port?: number;
  host?: string;
}

// All addresses of 127.0.0.0/8 belong to this machine, so the address can encode the intended port.
const divert = (target: Target): Target =>
  target.port === undefined ? target : { ...target, host: `127.${target.port >> 8}.${target.port & 255}.1`, port };

type Connect = (this: Socket, ...args: unknown[]) => Socket;
// `net` calls this method with a marked array of options and callback; `tls` calls it with separate arguments.
const connect = Socket.prototype.connect as unknown as Connect;
(Socket.prototype as { connect: unknown }).connect = function (this: Socket, ...args: unknown[]): Socket {
  const [first] = args;
  if (Array.isArray(first)) first[0] = divert(first[0] as Target);
  else args[0] = divert(first as Target);
  return connect.apply(this, args);
} satisfies Connect;
