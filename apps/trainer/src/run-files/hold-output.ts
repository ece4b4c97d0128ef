import { randomUUID } from "node:crypto";
import { linkSync, lstatSync, renameSync, rmSync, type Stats, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout } from "node:timers/promises";
import { ConfigError, RunError } from "../errors.ts";
import { startHeartbeat } from "./heartbeat.ts";
import { type Holder, readHolder } from "./holder.ts";
import { processPlace } from "../processes/process-place.ts";
import { isRunning, statusOf } from "../processes/process-status.ts";

/** In an output folder while a process writes there. */
export const holderFile = ".held-by.json";

/** How long to wait for a holder, in milliseconds. */
export interface HoldTimes {
  /** A process that is killed needs a moment to be gone, and whoever killed it goes on at once. */
  readonly patience: number;
  readonly betweenLooks: number;
  /** Between two touches of the file by its holder. */
  readonly betweenBeats: number;
  /**
   * A holder that this system does not list, and that does not touch its file for so long, is gone. Several beats: the
   * disk of a live one may stand still for seconds.
   */
  readonly silence: number;
}

const defaultTimes: HoldTimes = { patience: 1000, betweenLooks: 50, betweenBeats: 3000, silence: 30_000 };

export interface HoldOptions {
  /** What writes there: a run, a sweep. */
  readonly what: string;
  /** Called with a line for people if it takes a while to see whether a holder is gone. */
  readonly note?: ((line: string) => void) | undefined;
  /** Whether the wait for a holder is to end. */
  readonly isStopped?: (() => boolean) | undefined;
  /** Called if another process has taken the folder, since this one stood still for longer than `silence`. */
  readonly onTaken?: ((error: RunError) => void) | undefined;
  readonly times?: HoldTimes;
}

/** Ids of what this process holds itself. */
const heldHere = new Set<string>();

/**
 * Whether a holder is known to write or known to be gone. Unknown: its process is of another container or machine, and
 * only the beats of its file tell.
 */
const standingOf = ({ host, pid, place, began, id }: Holder): "writes" | "gone" | "unknown" => {
  if (place === undefined ? host !== hostname() : place !== processPlace()) return "unknown";
  if (pid === process.pid) return heldHere.has(id) ? "writes" : "gone";
  const status = statusOf(pid);
  if (!isRunning(pid, status)) return "gone";
  if (began === undefined) return "unknown"; // another process may have that number by now
  return began === status.began ? "writes" : "gone";
};

/** What there is under a path; links are not followed. */
const factsOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });

/** Take a file away that a process has left which is no more, unless another one was faster. */
const removeLeft = (path: string, left: Holder | undefined): void => {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
    if (readHolder(aside)?.id !== left?.id) linkSync(aside, path); // of one that has come since
  } catch {
    // another process has done it
  }
  rmSync(aside, { force: true });
};

const nameOf = ({ host, pid, since, id }: Holder): string => {
  const of = heldHere.has(id) ? ", this one" : host === hostname() ? "" : ` of host ${host}`;
  return `process ${pid}${of}, since ${since}`;
};

/**
 * Hold a folder for this process: two that write metrics and checkpoints to one folder take each other's files away.
 *
 * What a killed process of this system has left is passed over at once. One of another container or machine is gone
 * once its file has not been touched for `silence`: neither host name nor process id identifies it, and kernel
 * locks are out of reach of Node, and absent from many network disks. Only changes of the file are looked at, and no
 * clocks compared. A folder that cannot be written to is not held: the write itself reports it.
 *
 * @returns a function that lets the folder go.
 * @throws RunError if another process, or this one, holds it; ConfigError if the file is no regular one.
 */
export const holdOutput = async (output: string, options: HoldOptions): Promise<() => void> => {
  const { what, note, isStopped, onTaken, times = defaultTimes } = options;
  const path = resolve(join(output, holderFile));
  const own: Holder = {
    host: hostname(),
    pid: process.pid,
    place: processPlace() ?? "unknown",
    began: statusOf(process.pid).began,
    since: new Date().toISOString(),
    id: randomUUID(),
  };
  const refusal = (holder: Holder): RunError =>
    new RunError(
      "output-in-use",
      `${output}: ${what} is under way there (${nameOf(holder)}), and another would write to the same files; let it end, stop it, or name another folder; if nothing writes there any more, remove ${path}`,
    );
  const askedAt = performance.now();
  /** Which holder is waited for, when its file was touched last, and since when that is known here. */
  let seen: { readonly id: string; readonly touched: number; readonly at: number } | undefined;
  for (;;) {
    try {
      writeFileSync(path, `${JSON.stringify(own)}\n`, { flag: "wx" });
      break;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOSPC" || code === "EDQUOT") rmSync(path, { force: true }); // made, and empty
      if (code !== "EEXIST") return () => undefined;
    }
    const facts = factsOf(path);
    if (facts === undefined) continue;
    if (!facts.isFile())
      throw new ConfigError([
        `${path} is ${facts.isDirectory() ? "a folder" : "no regular file"}, but must be a file that says which process writes to ${output}; remove it`,
      ]);
    const holder = readHolder(path);
    const standing = holder === undefined ? "gone" : standingOf(holder);
    const isPatient = performance.now() - askedAt < times.patience;
    if (holder !== undefined && standing === "unknown") {
      if (isStopped?.() === true)
        throw new RunError("interrupted", `stopped while waiting for ${path}; nothing was trained`);
      if (seen?.id === holder.id && seen.touched !== facts.mtimeMs) throw refusal(holder);
      if (seen?.id !== holder.id) {
        seen = { id: holder.id, touched: facts.mtimeMs, at: performance.now() };
        note?.(
          `${output}: ${holderFile} is of ${nameOf(holder)}, in another container or on another machine; waiting up to ${times.silence / 1000} s to see whether it still writes`,
        );
      }
      if (performance.now() - seen.at < times.silence) {
        await setTimeout(times.betweenLooks);
        continue;
      }
    } else if (isPatient && (standing === "writes" ? holder?.pid !== process.pid : holder === undefined)) {
      await setTimeout(times.betweenLooks); // being killed, or about to be written
      continue;
    } else if (standing === "writes") throw refusal(holder!);
    removeLeft(path, holder);
  }
  heldHere.add(own.id);
  const endHeartbeat = startHeartbeat({ path, id: own.id, everyMilliseconds: times.betweenBeats }, () => {
    const taker = readHolder(path);
    if (!heldHere.has(own.id) || taker === undefined || taker.id === own.id) return;
    onTaken?.(
      new RunError(
        "output-taken",
        `${output}: ${nameOf(taker)} has taken the folder, since this process had stood still for more than ${times.silence / 1000} s; nothing more is written here`,
      ),
    );
  });
  return () => {
    heldHere.delete(own.id);
    endHeartbeat();
    if (readHolder(path)?.id === own.id) rmSync(path, { force: true });
  };
};
