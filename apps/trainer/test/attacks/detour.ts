// Loaded by Node before anything else in each process and thread of an attacked run: its connections go to the
// attacker's port, as through a compromised switch. Skein itself does not know about it.
import { Socket } from "node:net";

const port = Number(process.env["SKEIN_TEST_DETOUR"]);

interface Target {
  port?: number;
  host?: string;
}

// All of 127.0.0.0/8 is this machine, so the address encodes the intended port.
const divert = (target: Target): Target =>
  target.port === undefined ? target : { ...target, host: `127.${target.port >> 8}.${target.port & 255}.1`, port };

type Connect = (this: Socket, ...args: unknown[]) => Socket;
// Called as `net` does, with options and a callback in one array that it has marked; or as `tls` does.
const connect = Socket.prototype.connect as unknown as Connect;
(Socket.prototype as { connect: unknown }).connect = function (this: Socket, ...args: unknown[]): Socket {
  const [first] = args;
  if (Array.isArray(first)) first[0] = divert(first[0] as Target);
  else args[0] = divert(first as Target);
  return connect.apply(this, args);
} satisfies Connect;
