import { isRunning } from "@skein/cli/start";

/** Command of a process that runs ranks for the controller that started it. */
export const memberCommand = "member";

/** Environment variable with the process id of the controller, for processes started by a launcher. */
export const controllerVariable = "SKEIN_CONTROLLER";

const betweenLooksMilliseconds = 250;

/** Signals that service managers, terminals and users send to all processes of a run at once. */
const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/**
 * Ends this process immediately, regardless of the state of its threads. No data is lost, because only the controller
 * completes checkpoints.
 */
const end = (): void => void process.kill(process.pid, "SIGKILL");

/**
 * Ignores stop signals in this process: the controller of the run receives the same signal, lets all ranks save, and
 * ends this process. If the controller or the launcher ends, this process ends as well. Call this function before any
 * other part of the program is loaded.
 */
export const stayWithController = (): void => {
  for (const signal of stopSignals) process.on(signal, () => undefined);
  if (process.connected) process.once("disconnect", end);
  const controller = Number(process.env[controllerVariable]);
  if (!Number.isSafeInteger(controller) || controller <= 0) return;
  const launcher = process.ppid;
  setInterval(() => {
    if (process.ppid !== launcher || !isRunning(controller)) end();
  }, betweenLooksMilliseconds).unref();
};

/** Allows this process to end by itself after its work is done. */
export const leaveController = (): void => {
  process.off("disconnect", end);
  if (process.connected) process.disconnect(); // an open channel would keep this process running
};
