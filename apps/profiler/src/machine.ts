import { cpus, totalmem } from "node:os";

/** Returns a description of this machine: processor, cores, memory, platform and Node version. */
export const describeMachine = (): string => {
  const cores = cpus();
  return `${cores[0]?.model.trim() ?? "unknown processor"}, ${cores.length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform} ${process.arch}, Node ${process.version}`;
};
