import { ConfigError } from "@skein/cli/node";
import { type MlflowServer, mlflowServerOf } from "./mlflow-server.ts";

/** Destination of metrics in addition to the folder of the run. */
export type LogTarget = {
  readonly to: "mlflow";
  readonly server: MlflowServer;
  readonly experiment?: string | undefined;
};

/**
 * Parses the target of `--log`.
 *
 * @returns undefined for TensorBoard, whose event files every run writes.
 * @throws ConfigError if the name is unknown, if the name is W&B, which is not supported, or if the environment names
 * no server.
 */
export const logTargetOf = (
  name: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  option = "--log",
): LogTarget | undefined => {
  switch (name) {
    case undefined:
    case "tensorboard":
      return undefined;
    case "mlflow":
      return { to: "mlflow", server: mlflowServerOf(env), experiment: env["MLFLOW_EXPERIMENT_NAME"] || undefined };
    case "wandb":
      throw new ConfigError([
        `${option} wandb: W&B documents no protocol, and maintains no client for Node; it can import the event files that every run writes: wandb sync <folder of the run>`,
      ]);
    default:
      throw new ConfigError([`${option} ${name}: must be tensorboard or mlflow`]);
  }
};
