import { isRunning } from "./process-status.ts";

/** The command of a process that runs ranks for a controller, and was started by it. */
export const memberCommand = "member";

/**
 * Environment variable with the process id of the controller of the run, for processes that a launcher stands between.
 */
export const controllerVariable = "SKEIN_CONTROLLER";

const betweenLooksMilliseconds = 250;

/** Signals that service managers, terminals and people send to all processes of a run at once. */
const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/**
 * End at once, whatever threads of this process are in. Nothing is lost: the controller alone completes checkpoints.
 */
const end = (): void => void process.kill(process.pid, "SIGKILL");

/**
 * Leave stopping to the controller of the run: it gets the same signal, lets all ranks save, and ends this process. If
 * the controller or the launcher between is gone, end too. Called before anything else of the program is loaded.
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

/** Let this process end by itself: its part is over. */
export const leaveController = (): void => {
  process.off("disconnect", end);
  if (process.connected) process.disconnect(); // otherwise the channel keeps this process alive
};
