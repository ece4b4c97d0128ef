import { isRunning } from "./process-status.ts";

/** Command of a process that runs ranks for a controller, which started the process. */
export const memberCommand = "member";

/** Environment variable with the process id of the controller, for processes that a launcher starts. */
export const controllerVariable = "SKEIN_CONTROLLER";

const betweenLooksMilliseconds = 250;

/** Signals that service managers, terminals and users send to all processes of a run at once. */
const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/**
 * End at once, regardless of the state of this process's threads. Nothing is lost, because only the controller
 * completes checkpoints.
 */
const end = (): void => void process.kill(process.pid, "SIGKILL");

/**
 * Let the controller of the run handle stop signals: it gets the same signal, lets all ranks save, and ends this
 * process. If the controller or the launcher ends, this process ends too. Called before any other part of the program
 * is loaded.
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

/** Let this process end by itself, because its part is done. */
export const leaveController = (): void => {
  process.off("disconnect", end);
  if (process.connected) process.disconnect(); // otherwise the channel keeps this process alive
};
