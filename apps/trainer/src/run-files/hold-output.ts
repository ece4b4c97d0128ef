import { randomUUID } from "node:crypto";
import { linkSync, lstatSync, renameSync, rmSync, type Stats, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { ConfigError, RunError } from "../errors.ts";
import { startHeartbeat } from "./heartbeat.ts";
import { type Holder, readHolder } from "./holder.ts";
import { pidNamespace } from "../processes/process-place.ts";
import { isRunning, statusOf } from "../processes/process-status.ts";

/** File in an output folder while a process writes there. */
export const holderFile = ".held-by.json";

/** Times to wait for a holder, in milliseconds. */
export interface HoldTimes {
  /** A killed process needs a moment to end, and the program that killed it continues at once. */
  readonly patience: number;
  readonly pollMilliseconds: number;
  /** Time between two touches of the file by its holder. */
  readonly beatMilliseconds: number;
  /**
   * A holder is gone if this system does not list it and it has not touched its file for this time. Several beats,
   * because the disk of a live holder may stall for seconds.
   */
  readonly silence: number;
}

const defaultTimes: HoldTimes = { patience: 1000, pollMilliseconds: 50, beatMilliseconds: 3000, silence: 30_000 };

export interface HoldOptions {
  /** Kind of writer: a run, a sweep. */
  readonly what: string;
  /** Called with a line for the user if it takes time to find out whether a holder is gone. */
  readonly note?: ((line: string) => void) | undefined;
  /** Whether to stop waiting for a holder. */
  readonly isStopped?: (() => boolean) | undefined;
  /** Called if another process has taken the folder, because this process was suspended for longer than `silence`. */
  readonly onTaken?: ((error: RunError) => void) | undefined;
  readonly times?: HoldTimes;
}

/** Ids of the folders that this process holds. */
const heldHere = new Set<string>();

/**
 * Whether a holder still writes or is gone. Unknown: its process belongs to another container or machine, so only the
 * beats of its file can show.
 */
const holderState = ({ host, pid, place, began, id }: Holder): "writes" | "gone" | "unknown" => {
  if (place === undefined ? host !== hostname() : place !== pidNamespace()) return "unknown";
  if (pid === process.pid) return heldHere.has(id) ? "writes" : "gone";
  const status = statusOf(pid);
  if (!isRunning(pid, status)) return "gone";
  if (began === undefined) return "unknown"; // another process may have that id by now
  return began === status.began ? "writes" : "gone";
};

/** File status of a path; links are not followed. */
const factsOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

/** Remove the file of a process that no longer exists, unless another process was faster. */
const removeStale = (path: string, stale: Holder | undefined): void => {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
    if (readHolder(aside)?.id !== stale?.id) linkSync(aside, path); // it belongs to a holder that has arrived since
  } catch {
    // another process has removed it
  }
  rmSync(aside, { force: true });
};

const nameOf = ({ host, pid, since, id }: Holder): string => {
  const of = heldHere.has(id) ? ", this one" : host === hostname() ? "" : ` of host ${host}`;
  return `process ${pid}${of}, since ${since}`;
};

/**
 * Hold a folder for this process, because two processes that write metrics and checkpoints to one folder overwrite each
 * other's files.
 *
 * A file left by a killed process of this system is replaced at once. A holder of another container or machine counts
 * as gone if its file has not been touched for `silence`: neither host name nor process id identifies it, and Node
 * cannot use kernel locks, which many network disks lack. Only changes of the file are compared, not clocks. A folder
 * that cannot be written to is not held: the write itself reports the error.
 *
 * @returns a function that releases the folder.
 * @throws RunError if this or another process holds the folder; ConfigError if the file is not a regular file.
 */
export const holdOutput = async (output: string, options: HoldOptions): Promise<() => void> => {
  const { what, note, isStopped, onTaken, times = defaultTimes } = options;
  const path = resolve(join(output, holderFile));
  const own: Holder = {
    host: hostname(),
    pid: process.pid,
    place: pidNamespace() ?? "unknown",
    began: statusOf(process.pid).began,
    since: new Date().toISOString(),
    id: randomUUID(),
  };
  const refusal = (holder: Holder): RunError =>
    new RunError(
      "output-in-use",
      `${output}: ${what} is writing there (${nameOf(holder)}), and another writer would overwrite the same files; let it end, stop it, or name another folder; if nothing writes there any more, remove ${path}`,
    );
  const askedAt = performance.now();
  /** The holder that this process waits for, when its file was last touched, and when that touch was first seen. */
  let seen: { readonly id: string; readonly touched: number; readonly at: number } | undefined;
  for (;;) {
    try {
      writeFileSync(path, `${JSON.stringify(own)}\n`, { flag: "wx" });
      break;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOSPC" || code === "EDQUOT") rmSync(path, { force: true }); // created, but empty
      if (code !== "EEXIST") return () => undefined;
    }
    const facts = factsOf(path);
    if (facts === undefined) continue;
    if (!facts.isFile())
      throw new ConfigError([
        `${path} is ${facts.isDirectory() ? "a folder" : "not a regular file"}, but must be a file that names the process that writes to ${output}; remove it`,
      ]);
    const holder = readHolder(path);
    const state = holder === undefined ? "gone" : holderState(holder);
    const isPatient = performance.now() - askedAt < times.patience;
    if (holder !== undefined && state === "unknown") {
      if (isStopped?.() === true)
        throw new RunError("interrupted", `stopped while waiting for ${path}; nothing was trained`);
      if (seen?.id === holder.id && seen.touched !== facts.mtimeMs) throw refusal(holder);
      if (seen?.id !== holder.id) {
        seen = { id: holder.id, touched: facts.mtimeMs, at: performance.now() };
        note?.(
          `${output}: ${holderFile} belongs to ${nameOf(holder)}, in another container or on another machine; waiting up to ${times.silence / 1000} s to see whether that process still writes`,
        );
      }
      if (performance.now() - seen.at < times.silence) {
        await setTimeout(times.pollMilliseconds);
        continue;
      }
    } else if (isPatient && (state === "writes" ? holder?.pid !== process.pid : holder === undefined)) {
      await setTimeout(times.pollMilliseconds); // being killed, or about to be written
      continue;
    } else if (state === "writes") throw refusal(holder!);
    removeStale(path, holder);
  }
  heldHere.add(own.id);
  const endHeartbeat = startHeartbeat({ path, id: own.id, everyMilliseconds: times.beatMilliseconds }, () => {
    const taker = readHolder(path);
    if (!heldHere.has(own.id) || taker === undefined || taker.id === own.id) return;
    onTaken?.(
      new RunError(
        "output-taken",
        `${output}: ${nameOf(taker)} has taken the folder, because this process was suspended for more than ${times.silence / 1000} s; this process writes nothing more there`,
      ),
    );
  });
  return () => {
    heldHere.delete(own.id);
    endHeartbeat();
    if (readHolder(path)?.id === own.id) rmSync(path, { force: true });
  };
};
