import { setTimeout as rest } from "node:timers/promises";
import { connectionsTo, until } from "../cli.ts";
import type { Attack } from "./attack.ts";
import { AttackedRun, stepsDone, type Transport } from "./attacked-run.ts";
import { countTries } from "./count-tries.ts";

/** Events while a rank is paused for longer than the timeout of the other rank. */
const meanwhile = [
  // As when a machine is suspended and its cluster restarts the other rank, which finds the address of the paused
  // coordinator.
  "the other is killed and started again",
  "the other gives it up",
  "the other gives it up, and both are started again beside it",
] as const;

export const pause: Attack = {
  name: "pause",
  what: "a rank is paused and continues: so does the run, within its timeouts; beyond them after a restart, with the same bits",
  fewTries: 1,
  inFullRun: true,
  tries: 24,
  run: async ({ sound, folder, ...input }) => {
    sound.copyJob(folder);
    return countTries(input, async (number, draw) => {
      const transport: Transport = draw(2) === 0 ? "tcp" : "tls";
      const what = number % 4 === 3 ? "it goes on in time" : meanwhile[number % 4]!;
      const paused = what === meanwhile[0] ? 0 : draw(2);
      const after = 1 + draw(15);
      const patience = what === meanwhile[1] || what === meanwhile[2] ? 2 : 30;
      const network = { silenceSeconds: patience, timeoutSeconds: Math.max(8, 2 * patience) };
      const run = new AttackedRun(`run-${number}`, { folder, transport, network });
      const counted = `rank ${paused === 0 ? "0" : "1"}, ${what}`;
      const tell = (harm: string | undefined): { counted: string; harm: string | undefined } => ({
        counted,
        harm: harm && `${transport}, rank ${paused} after ${after} steps, ${what}: ${harm}`,
      });
      try {
        await run.startRanks(0, 1);
        const [stopped, other] = [run.processes[paused]!, run.processes[1 - paused]!];
        await until(run.processes[0]!, () => stepsDone(run.output) >= after);
        stopped.child.kill("SIGSTOP");
        if (what === "it goes on in time") {
          await rest(200 + draw(2000));
          stopped.child.kill("SIGCONT");
          const { harm, restarted } = await run.finish(sound);
          return tell(harm ?? (restarted ? "it was started again" : undefined));
        }
        if (what === meanwhile[0]) {
          other.child.kill("SIGKILL");
          await other.ended;
          const before = connectionsTo(run.port);
          await run.startRanks(1);
          await until(run.processes[1]!, () => connectionsTo(run.port) > before);
        } else {
          const { code } = await other.ended;
          if (code !== 1) return tell(`the other gave it up with code ${code}`);
          if (what === meanwhile[2]) {
            await run.startRanks(0, 1);
            await rest(draw(4000));
          }
        }
        stopped.child.kill("SIGCONT");
        const { code, stderr } = await stopped.ended;
        if (code === 0 || code === 2 || /^\s+at /m.test(stderr))
          return tell(`it ends with code ${code}: ${stderr.trim()}`);
        return tell((await run.finish(sound)).harm);
      } finally {
        run.kill();
      }
    });
  },
};
