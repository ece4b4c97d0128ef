import { connect, type Socket } from "node:net";
import { until } from "../cli.ts";
import type { Attack } from "./attack.ts";
import { AttackedRun, stepsDone, type Transport } from "./attacked-run.ts";
import { countTries } from "./count-tries.ts";
import type { Draw } from "./draw.ts";
import { listeningPorts } from "./listening-ports.ts";
import { Middle } from "./middle.ts";

/**
 * Number of connections held open per port: more than the limit for unauthenticated connections, see docs/protocol.md.
 */
const heldPerPort = 1200;
const maxPerPort = 3000;
const typeAt = 5;
const lengthAt = 20;

/** Data sent by a connection of the flood, by name. `hello` is the hello frame of a rank. */
const kinds: Readonly<Record<string, (socket: Socket, hello: Buffer) => void>> = {
  silent: () => undefined,
  garbage: (socket) => socket.write("GET / HTTP/1.1\r\nHost: here\r\n\r\n".repeat(30)),
  "the beginning of TLS": (socket) => socket.write(Buffer.from([0x16, 3, 1])),
  "a hello, and no more": (socket, hello) => socket.write(hello),
  // Announces 64 MiB, which only authenticated peers may announce.
  "a large frame before the proof": (socket, hello) => {
    const header = Buffer.from(hello.subarray(0, 32));
    header[typeAt] = 8;
    header.writeBigUInt64LE(BigInt(2 ** 26), lengthAt);
    socket.write(header);
    socket.write(Buffer.alloc(2 ** 16));
  },
  "a hello, drop by drop": (socket, hello) => {
    let at = 0;
    const drops = setInterval(() => {
      if (socket.writable && at < hello.length) socket.write(hello.subarray(at, ++at));
      else clearInterval(drops);
    }, 100);
    socket.once("close", () => clearInterval(drops));
  },
};
const names = Object.keys(kinds);

/** Connections that are held open, and opened again when they are closed. */
class Flood {
  #over = false;
  readonly #sockets = new Set<Socket>();
  readonly #say: (socket: Socket) => void;

  constructor(say: (socket: Socket) => void) {
    this.#say = say;
  }

  /** Resolves when all connections have been opened once. */
  async fill(port: number): Promise<void> {
    let opened = 0;
    const first = Promise.withResolvers<void>();
    const open = (): void => {
      if (this.#over || opened >= maxPerPort) return;
      const place = ++opened;
      const socket = connect(port, "127.0.0.1", () => this.#say(socket));
      this.#sockets.add(socket);
      socket.on("error", () => undefined).resume();
      socket.once("connect", () => place >= heldPerPort && first.resolve());
      socket.once("close", () => {
        this.#sockets.delete(socket);
        setTimeout(open, 5);
      });
    };
    for (let i = 0; i < heldPerPort; i++) open();
    await first.promise;
  }

  end(): void {
    this.#over = true;
    for (const socket of this.#sockets) socket.destroy();
  }
}

/**
 * Returns a function that sends data over a connection: the data named `kind`, or randomly chosen data if `kind` is
 * undefined.
 */
const sayer = (kind: string | undefined, hello: Buffer, draw: Draw) => (socket: Socket) =>
  kinds[kind ?? names[draw(names.length)]!]!(socket, hello);

/** Maximum number of characters that a run may print about unauthenticated connections. */
const maxCharacters = 20_000;

export const flood: Attack = {
  name: "flood",
  what: "strangers use up the connections of all ports of a run, silently or sending: no rank is locked out, and the log stays short",
  fewTries: 1,
  tries: 28,
  inFullRun: true, // joining-attacks.test.ts of collectives tests unauthenticated peers in each test run
  run: async ({ sound, folder, ...input }) => {
    sound.copyJob(folder);
    return countTries(input, async (number, draw) => {
      const transport: Transport = draw(2) === 0 ? "tcp" : "tls";
      const kind = names[(number % (names.length + 1)) - 1]; // first a mixture of all kinds, then each kind
      const middle = await Middle.open();
      const run = new AttackedRun(`run-${number}`, {
        folder,
        transport,
        network: { silenceSeconds: 30, timeoutSeconds: 60 },
        env: middle.env,
      });
      let strangers: Flood | undefined;
      try {
        await run.startRanks(0);
        const host = run.processes[0]!;
        await until(
          host,
          () => (middle.passages[0]?.said.up.length ?? 0) > 0 && listeningPorts(host.child.pid!).length >= 2,
        );
        strangers = new Flood(sayer(kind, middle.passages[0]!.said.up[0]!, draw));
        await Promise.all(listeningPorts(host.child.pid!).map((port) => strangers!.fill(port)));
        await run.startRanks(1);
        await until(host, () => stepsDone(run.output) > 1 + draw(5)).catch(() => undefined);
        await Promise.all(listeningPorts(run.processes[1]!.child.pid!).map((port) => strangers!.fill(port)));
        const { harm, restarted } = await run.finish(sound);
        const { length } = host.stderr();
        const wrong =
          harm ??
          (restarted
            ? "it was started again"
            : length > maxCharacters
              ? `it wrote ${length} characters about it`
              : undefined);
        const counted = kind ?? "all kinds";
        return { counted, harm: wrong && `${counted}, ${transport}: ${wrong}` };
      } finally {
        strangers?.end();
        run.kill();
        middle.close();
      }
    });
  },
};
