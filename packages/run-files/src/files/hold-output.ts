import { randomUUID } from "node:crypto";
import { linkSync, lstatSync, renameSync, rmSync, type Stats, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { ConfigError, pidNamespace, RunError } from "@skein/cli/node";
import { isRunning, statusOf } from "@skein/cli/start";
import { startHeartbeat } from "./heartbeat.ts";
import { type Holder, readHolder } from "./holder.ts";

/** Lock file in an output folder, which exists while a process writes to the folder. */
export const holderFile = ".held-by.json";

/** Timing of the lock on an output folder, in milliseconds. */
export interface HoldTimes {
  /**
   * Time to wait for the holder of the lock to end, if the holder runs on this machine. A killed process needs a moment
   * to end, but the program that killed the process may start the next run at once.
   */
  readonly patience: number;
  readonly pollMilliseconds: number;
  /** Interval at which the process that holds the lock touches the lock file. */
  readonly beatMilliseconds: number;
  /**
   * Time without an update of the lock file after which its holder counts as gone, if the holder is not listed on this
   * system. The time covers several heartbeats, because the disk of a live holder may stall for seconds.
   */
  readonly silence: number;
}

const defaultTimes: HoldTimes = { patience: 1000, pollMilliseconds: 50, beatMilliseconds: 3000, silence: 30_000 };

export interface HoldOptions {
  /** Description of the process that writes, such as "a run" or "a sweep", for messages. */
  readonly what: string;
  /** Called with a line for the user if it takes time to determine whether a holder is gone. */
  readonly note?: ((line: string) => void) | undefined;
  /** Returns whether to stop waiting for the process that holds the lock to end. */
  readonly isStopped?: (() => boolean) | undefined;
  /**
   * Called if another process has locked the output folder, because this process was suspended for longer than
   * `silence`.
   */
  readonly onTaken?: ((error: RunError) => void) | undefined;
  readonly times?: HoldTimes;
}

/** Lock ids of the output folders held by this process. */
const heldHere = new Set<string>();

/**
 * Whether the process that holds a lock still writes or is gone. "unknown": the process runs in another container or on
 * another machine, or its process id may have been reused. In this case, only heartbeats on the lock file show whether
 * the process writes.
 */
const holderState = ({ host, pid, place, began, id }: Holder): "writes" | "gone" | "unknown" => {
  if (place === undefined ? host !== hostname() : place !== pidNamespace()) return "unknown";
  if (pid === process.pid) return heldHere.has(id) ? "writes" : "gone";
  const status = statusOf(pid);
  if (!isRunning(pid, status)) return "gone";
  if (began === undefined) return "unknown"; // the process id may belong to another process by now
  return began === status.began ? "writes" : "gone";
};

/** Returns the file status of a path. Links are not followed. */
const factsOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

/** Removes the lock file of a process that no longer exists, unless another process has just replaced the file. */
const removeStale = (path: string, stale: Holder | undefined): void => {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
    if (readHolder(aside)?.id !== stale?.id) linkSync(aside, path); // the file belongs to a new holder, so restore it
  } catch {
    // another process has already removed the file
  }
  rmSync(aside, { force: true });
};

const nameOf = ({ host, pid, since, id }: Holder): string => {
  const of = heldHere.has(id) ? ", this one" : host === hostname() ? "" : ` of host ${host}`;
  return `process ${pid}${of}, since ${since}`;
};

/**
 * Locks a folder for this process, because two processes that write metrics and checkpoints to one folder overwrite
 * each other's files.
 *
 * The lock file of a killed process of this system is replaced at once. A holder in another container or machine counts
 * as gone if its lock file has not been touched for `silence`: neither host name nor process id identifies the holder,
 * and kernel locks are not available in Node or on many network disks. Only modification times of the lock file are
 * compared with each other, because clocks of machines differ. A folder that is not writable is not locked; a later
 * write reports the error.
 *
 * @returns a function that releases the folder.
 * @throws RunError if this or another process holds the folder; ConfigError if the lock file is not a regular file.
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
  /**
   * Last observed state of another process that holds the lock: its lock id, the modification time of its lock file,
   * and the local time at which this process first saw that modification time. Undefined: no holder has been observed.
   */
  let seen: { readonly id: string; readonly touched: number; readonly at: number } | undefined;
  for (;;) {
    try {
      writeFileSync(path, `${JSON.stringify(own)}\n`, { flag: "wx" });
      break;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOSPC" || code === "EDQUOT") rmSync(path, { force: true }); // the file was created, but is empty
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
      await setTimeout(times.pollMilliseconds); // the holder is being killed, or has not yet written the file
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
