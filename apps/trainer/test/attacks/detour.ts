// Loaded by Node before anything else in each process and thread of an attacked run: what it connects to is the
// attacker's port, as where somebody has taken over a switch. Nothing of Skein knows.
import { Socket } from "node:net";

const port = Number(process.env["SKEIN_TEST_DETOUR"]);

interface Target {
  port?: number;
  host?: string;
}

// All of 127.0.0.0/8 is this machine, so the address tells the attacker which port was meant.
const divert = (target: Target): Target =>
  target.port === undefined ? target : { ...target, host: `127.${target.port >> 8}.${target.port & 255}.1`, port };

type Connect = (this: Socket, ...args: unknown[]) => Socket;
// As `net` calls it, with options and a callback in one array that it has marked; or as `tls` does.
const connect = Socket.prototype.connect as unknown as Connect;
(Socket.prototype as { connect: unknown }).connect = function (this: Socket, ...args: unknown[]): Socket {
  const [first] = args;
  if (Array.isArray(first)) first[0] = divert(first[0] as Target);
  else args[0] = divert(first as Target);
  return connect.apply(this, args);
} satisfies Connect;
