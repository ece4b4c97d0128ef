import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TlsIdentity } from "@skein/collectives/node";
import { describeError, type ErrorReport, isShortage } from "../errors.ts";
import { coordinatorVariable, secretVariable } from "../launch-targets/rank-command.ts";
import type { LostProcess, Processes, StartProcesses } from "./process-runner.ts";
import { memberCommand } from "../processes/stay-with-controller.ts";
import { timeLimits } from "../processes/time-limits.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));

/**
 * Begins the line in which a process says why it failed, where a launcher stands between it and the controller of the
 * run.
 */
export const reportPrefix = "skein-train member: ";

/** How a process of a run is started, after the command or launcher that starts it. */
export const memberArguments: readonly string[] = [process.execPath, ...process.execArgv, main, memberCommand];

/**
 * Environment variables of a process of a run. Other users cannot read the environment, and it ends with the process.
 * What may be longer than a variable can be (128 KiB on Linux) is in the first IPC message, a `MemberStart`. mpirun
 * offers no IPC; there the job is in a file.
 */
export const memberVariables: Readonly<Record<"coordinator" | "secret" | "ranks" | "jobFile", string>> = {
  coordinator: coordinatorVariable,
  secret: secretVariable,
  ranks: "SKEIN_RANKS",
  jobFile: "SKEIN_JOB_FILE",
};

/** First IPC message to a process of a run. */
export interface MemberStart {
  /** The job, JSON. */
  readonly job: string;
  /** TLS identity of the process. Absent: TCP. */
  readonly identity?: TlsIdentity | undefined;
}

/** How a process ended, in words. */
const endOf = (code: number | null, signal: NodeJS.Signals | null): string =>
  signal === null ? `its process ended with code ${code} before the run did` : `its process was ended by ${signal}`;

/**
 * See children to their end.
 *
 * By Node's own functions, as wherever this program starts others: execa 10.2 takes 80 ms of processor time to load, a
 * tenth of a tiny run, and brings 17 packages more.
 *
 * @param endSignal ends a child that need not say or save anything more. Not a signal that asks to stop: ranks leave
 * those to this process.
 */
export const childProcesses = (
  children: readonly { readonly child: ChildProcess; readonly ranks: readonly number[] }[],
  endSignal: NodeJS.Signals,
): Processes => {
  const ended = children.map(
    ({ child }) =>
      new Promise<void>((resolve) => {
        child.once("close", () => resolve());
        // Without file handles for its channels, nothing is started, and nothing is closed.
        if (child.pid === undefined) child.once("error", () => resolve());
      }),
  );
  const lost = new Promise<LostProcess>((resolve) => {
    for (const { child, ranks } of children) {
      let report: ErrorReport | undefined;
      child.on("message", (message: ErrorReport) => (report = message));
      child.once("error", (error) => {
        const shortage = describeError(error);
        const reason = `its process could not be started: ${error.message}`;
        resolve({ ranks, reason, ...(isShortage(shortage) && { report: shortage }) });
      });
      child.once("close", (code, signal) => resolve({ ranks, reason: endOf(code, signal), ...(report && { report }) }));
    }
  });
  return {
    lost,
    end: async (atOnce) => {
      if (atOnce) for (const { child } of children) child.kill(endSignal);
      const timer = setTimeout(() => {
        for (const { child } of children) child.kill("SIGKILL");
      }, timeLimits.process);
      await Promise.all(ended);
      clearTimeout(timer);
    },
  };
};

/**
 * Start the processes of a run on this machine.
 *
 * @param identityOf the TLS identity of a process, by its ranks: each gets its own only.
 */
export const startLocalProcesses =
  (identityOf?: (ranks: readonly number[]) => TlsIdentity): StartProcesses =>
  async ({ attempt, coordinator, secret }) => {
    const { job } = attempt.assignment;
    const { ranks, network } = job;
    const groups = Array.from({ length: ranks / network.ranksPerProcess }, (_, process) =>
      Array.from({ length: network.ranksPerProcess }, (_, i) => process * network.ranksPerProcess + i),
    );
    // All before the first is started: a fault in the files of one must leave no other behind.
    const identities = groups.map((group) => identityOf?.(group));
    const children: { readonly ranks: readonly number[]; readonly child: ChildProcess }[] = [];
    try {
      for (const group of groups)
        children.push({
          ranks: group,
          child: spawn(memberArguments[0]!, memberArguments.slice(1), {
            env: {
              ...process.env,
              [memberVariables.coordinator]: `${coordinator.host}:${coordinator.port}`,
              [memberVariables.secret]: secret,
              [memberVariables.ranks]: group.join(","),
            },
            stdio: ["ignore", "ignore", "inherit", "ipc"],
            // A Ctrl-C in the terminal is for the launcher, which lets the ranks save first.
            detached: true,
          }),
        });
    } catch (error) {
      for (const { child } of children) child.kill("SIGKILL"); // the others will not come
      throw error;
    }
    const processes = childProcesses(children, "SIGKILL");
    const text = JSON.stringify(job);
    for (const [index, { child }] of children.entries()) {
      const start: MemberStart = { job: text, identity: identities[index] };
      // A process that was not started, or has ended already, is reported as lost.
      if (child.connected) child.send(start, () => undefined);
    }
    return processes;
  };
