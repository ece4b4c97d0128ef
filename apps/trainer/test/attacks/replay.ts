import { connect } from "node:net";
import { setTimeout as rest } from "node:timers/promises";
import { until } from "../cli.ts";
import type { Attack } from "./attack.ts";
import { AttackedRun, stepsDone, type Transport } from "./attacked-run.ts";
import { countTries } from "./count-tries.ts";
import { listeningPorts } from "./listening-ports.ts";
import { Middle } from "./middle.ts";

/**
 * Sends to a port the bytes that were sent to another port, chunk by chunk.
 * @returns the bytes received until the connection is closed.
 */
const sayAgain = (port: number, chunks: readonly Buffer[], restMilliseconds: number): Promise<Buffer> =>
  new Promise((resolve) => {
    const heard: Buffer[] = [];
    const socket = connect(port, "127.0.0.1", () => void say());
    const say = async (): Promise<void> => {
      for (const chunk of chunks) {
        if (!socket.writable) return;
        socket.write(chunk);
        await rest(restMilliseconds); // as in the recorded connection, in which responses were received between chunks
      }
      socket.end();
    };
    socket.on("data", (chunk: Buffer) => heard.push(chunk)).on("error", () => undefined);
    socket.on("close", () => resolve(Buffer.concat(heard)));
  });

/** Beginning of the header of a welcome frame: magic bytes, major version 2, type 2. */
const welcome = Buffer.from([...Buffer.from("SKN1"), 2, 2]);

export const replay: Attack = {
  name: "replay",
  what: "the messages of a rank that joined and linked are replayed, before, during and after: they grant no access, and the run is unharmed",
  fewTries: 1,
  tries: 20,
  run: async ({ sound, folder, ...input }) => {
    sound.copyJob(folder);
    return countTries(input, async (number, draw) => {
      const transport: Transport = number % 2 === 0 ? "tcp" : "tls";
      const middle = await Middle.open();
      const run = new AttackedRun(`run-${number}`, { folder, transport, env: middle.env });
      const opened: string[] = [];
      let numSaid = 0;
      try {
        // A normal start is recorded and then stopped, so that its ranks are free again.
        const after = 1 + draw(10);
        await run.startRanks(0, 1);
        await until(run.processes[0]!, () => stepsDone(run.output) >= after);
        const recorded = middle.passages.map(({ said }) => said.up.slice());
        for (const { child } of run.processes) child.kill("SIGKILL");
        await Promise.all(run.processes.map(({ ended }) => ended));
        const sayAll = async (when: string, ports: readonly number[]): Promise<void> => {
          const answers = await Promise.all(
            ports.flatMap((port) => recorded.map((chunks) => sayAgain(port, chunks.slice(0, 4 + draw(12)), draw(40)))),
          );
          numSaid += answers.length;
          if (answers.some((answer) => answer.includes(welcome))) opened.push(when);
        };
        await run.startRanks(0);
        const host = run.processes[0]!;
        await until(host, () => listeningPorts(host.child.pid!).length >= 2);
        const [steps, ports] = [stepsDone(run.output), listeningPorts(host.child.pid!)];
        await sayAll("before", ports);
        await run.startRanks(1);
        await until(host, () => stepsDone(run.output) > steps).catch(() => undefined);
        await sayAll("during", [...ports, ...listeningPorts(run.processes[1]!.child.pid!)]);
        const { harm, restarted } = await run.finish(sound);
        await sayAll("after", ports);
        const wrong =
          opened.length > 0
            ? `a door was opened ${opened.join(" and ")}`
            : (harm ?? (restarted ? "it was started again" : undefined));
        return {
          counted: `${transport}, ${numSaid} replayed`,
          harm: wrong && `${transport}, recorded for ${after} steps: ${wrong}`,
        };
      } finally {
        run.kill();
        middle.close();
      }
    });
  },
};
