import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * Name of the system in which process ids are unique: boot id and PID namespace on Linux, where containers have their
 * own namespaces under one host name; the host name on other systems. Absent: the system does not report it, as when
 * /proc belongs to another namespace.
 */
export const pidNamespace = (): string | undefined => {
  if (process.platform !== "linux") return hostname();
  try {
    if (readlinkSync("/proc/self") !== String(process.pid)) return undefined;
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return undefined;
  }
};
