import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * Returns an identifier of the system in which process ids are unique. On Linux: boot id and PID namespace, because
 * containers have their own PID namespaces and may share a host name. On other systems: the host name. Undefined if the
 * identifier cannot be read, for example because /proc belongs to another namespace.
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
