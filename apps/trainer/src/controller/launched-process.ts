import { hostname } from "node:os";
import { setTimeout } from "node:timers/promises";
import { isLoopback, type JoinOptions, readTlsIdentity } from "@skein/collectives/node";
import { coordinatorFiles } from "../certificates/certificate-folder.ts";
import type { Ending } from "../members/control-messages.ts";
import { ConfigError, describeError, exitCodes } from "../errors.ts";
import { Interruption } from "../processes/interruption.ts";
import { exitCodeOfSignal, onInterrupt, type StopCause } from "../processes/interrupts.ts";
import type { Job } from "../job/job.ts";
import { coordinatorVariable, secretVariable } from "../launch-targets/rank-command.ts";
import { type MemberOptions, takePart } from "../members/take-part.ts";
import { openMpiWorld } from "../members/mpi-world.ts";
import { memberIdentity, openNetworkWorld } from "../members/network-world.ts";
import { processRunner } from "./process-runner.ts";
import type { RankRunner } from "./rank-runner.ts";
import { type Address, discoverRank } from "../members/rank-discovery.ts";
import { timeLimits } from "../processes/time-limits.ts";
import { writeStderr } from "../console/terminal.ts";

/** The place of this process in a run whose processes a launcher has started, all by the same command. */
export interface LaunchedPlace {
  readonly job: Job;
  readonly process: number;
  readonly ranks: readonly number[];
  /** Where rank 0 hosts the rendezvous. Under MPI it may be left to the ranks to tell each other. */
  readonly coordinator: Address | undefined;
  readonly secret: string | undefined;
}

/**
 * Find out whether a launcher has started this process as one of several.
 *
 * @throws ConfigError where what the launcher says does not fit the job.
 */
export const launchedPlace = (job: Job, env: NodeJS.ProcessEnv): LaunchedPlace | undefined => {
  const discovered = discoverRank(env);
  if (discovered === undefined) return undefined;
  const { rank: index, worldSize: count, source, coordinator } = discovered;
  if (job.transport === "threads") {
    if (count === 1) return undefined;
    throw new ConfigError([
      `${source} has started ${count} processes, but transport: threads keeps all ranks in one; add --transport tcp, tls or mpi`,
    ]);
  }
  const each = job.network.ranksPerProcess;
  if (count * each !== job.ranks)
    throw new ConfigError([
      `${source} has started ${count} processes of ${each} ${each === 1 ? "rank" : "ranks"}, but the job has ${job.ranks} ranks; add --ranks ${count * each}, or start ${job.ranks / each} processes`,
    ]);
  if (job.transport === "tls" && job.network.certificates === undefined)
    throw new ConfigError([
      `${source} has started ${count} processes, and transport: tls needs the certificates of all; make them with skein-train certs init and add --certificates <folder>`,
    ]);
  const secret = env[secretVariable];
  if (job.transport !== "mpi" && (coordinator === undefined || secret === undefined))
    throw new ConfigError([
      `${source} has started ${count} processes, which need to know where they meet; set ${coordinatorVariable}=<host of rank 0>:<port> and ${secretVariable} alike for all, or use skein-train launch`,
    ]);
  return { job, process: index, ranks: Array.from({ length: each }, (_, i) => index * each + i), coordinator, secret };
};

/** What rank 0 tells the others through MPI, where nobody else has told them. */
interface Meeting {
  readonly address: Address;
  readonly secret: string;
}

const memberOptions = (place: LaunchedPlace, hosted: Meeting | undefined): MemberOptions => {
  const { job, ranks, coordinator, secret } = place;
  const { certificates, insecure } = job.network;
  const identity = certificates === undefined ? undefined : memberIdentity(certificates, ranks);
  const onOneMachine = coordinator === undefined || isLoopback(coordinator.host);
  const meet = async ({
    address,
    secret: proof,
  }: Meeting): Promise<Pick<JoinOptions, "address" | "secret" | "security" | "insecure">> => ({
    address,
    secret: proof,
    insecure,
    ...(identity !== undefined && { security: identity }),
  });
  if (job.transport === "mpi") {
    return {
      job,
      ranks,
      openWorld: openMpiWorld,
      rendezvous: async (world) => {
        const words = await world.share!(hosted && JSON.stringify(hosted));
        return meet(JSON.parse(words) as Meeting);
      },
    };
  }
  return {
    job,
    ranks,
    openWorld: openNetworkWorld({ secret: secret!, identity, onOneMachine }),
    rendezvous: () => meet({ address: hosted?.address ?? coordinator!, secret: secret! }),
  };
};

/** Host the run in the process of rank 0, which takes part in it as well. */
export const launchedRunner = (place: LaunchedPlace): RankRunner => {
  const { job, ranks, coordinator, secret } = place;
  const { certificates, insecure } = job.network;
  const listen =
    coordinator === undefined
      ? insecure
        ? "0.0.0.0"
        : "127.0.0.1"
      : isLoopback(coordinator.host)
        ? coordinator.host
        : "0.0.0.0";
  return processRunner({
    ...(secret !== undefined && { secret }),
    rendezvous: {
      host: listen,
      ...(coordinator && { port: coordinator.port }),
      ranks,
      insecure,
      ...(certificates !== undefined && { security: readTlsIdentity(coordinatorFiles(certificates)) }),
    },
    start: ({ attempt: { prepared }, coordinator: address, secret: proof }) => {
      // Others reach this machine by its name; this process by what it listens on.
      const reach = listen === "0.0.0.0" ? (coordinator?.host ?? hostname()) : address.host;
      const over = new AbortController();
      const hosted = { address: { host: reach, port: address.port }, secret: proof };
      const part = takePart({ ...memberOptions(place, hosted), prepared, signal: over.signal });
      const lost = new Promise<{ ranks: readonly number[]; reason: string }>((resolve) => {
        part.catch((error: Error) => resolve({ ranks, reason: error.message }));
      });
      return Promise.resolve({
        lost,
        end: async (atOnce) => {
          const ended = part.then(
            () => undefined,
            () => undefined,
          );
          if (!atOnce) return ended;
          over.abort();
          await Promise.race([ended, setTimeout(timeLimits.launchedProcess, undefined, { ref: false })]);
        },
      });
    },
  });
};

const codeOf = (ending: Ending, cause: StopCause | undefined): number => {
  if (ending === "stopped") return exitCodeOfSignal(cause ?? "SIGTERM");
  return ending === "finished" ? exitCodes.ok : exitCodes.failure;
};

/** Codes of a run that was stopped before its ranks had begun. */
const stoppedEarly: ReadonlySet<string> = new Set(["rendezvous-stopped", "interrupted"]);

/**
 * Take part in a run that the process of rank 0 hosts.
 *
 * @param say tells people of this process for whom it waits.
 * @returns the exit code.
 */
export const takeLaunchedPart = async (place: LaunchedPlace, say: (line: string) => void): Promise<number> => {
  const interruption = new Interruption();
  let cause: StopCause | undefined;
  const release = onInterrupt((signal) => {
    cause = signal;
    const { endsAtOnce } = interruption;
    interruption.request();
    if (endsAtOnce)
      void setTimeout(timeLimits.launchedProcess, undefined, { ref: false }).then(() =>
        process.exit(exitCodeOfSignal(signal)),
      );
  });
  try {
    return codeOf(
      await takePart({ ...memberOptions(place, undefined), interruption, controllerRanks: [0], onWaiting: say }),
      cause,
    );
  } catch (error) {
    const { code, message } = describeError(error);
    if (!stoppedEarly.has(code)) throw error;
    writeStderr(`${message}\n`);
    return codeOf("stopped", cause);
  } finally {
    release();
  }
};
