import { expect, test } from "vitest";
import { logTargetOf } from "./log-target.ts";
import { mlflowKey } from "./mlflow-client.ts";

const server = (env: Readonly<Record<string, string>>): object | undefined => logTargetOf("mlflow", env)?.server;

test("what is asked for in one line, with its cure", () => {
  expect(logTargetOf(undefined, {})).toBeUndefined();
  expect(logTargetOf("tensorboard", {})).toBeUndefined();
  expect(() => logTargetOf("wandb", {})).toThrow(/wandb sync <folder of the run>$/);
  expect(() => logTargetOf("neptune", {})).toThrow(/^--log neptune: must be tensorboard or mlflow$/);
  expect(() => logTargetOf("mlflow", {})).toThrow(/MLFLOW_TRACKING_URI names no server/);
  for (const uri of ["./mlruns", "sqlite:///mlflow.db", "databricks", "file:///tmp"])
    expect(() => server({ MLFLOW_TRACKING_URI: uri })).toThrow(/must be an address of http or https/);
});

test("the server and who we are, as MLflow's own client reads them", () => {
  const uri = "https://name:p%40ss@host.example/mlflow/";
  expect(server({ MLFLOW_TRACKING_URI: "http://127.0.0.1:5000" })).toEqual({
    address: "http://127.0.0.1:5000",
    authorization: undefined,
  });
  expect(server({ MLFLOW_TRACKING_URI: uri })).toEqual({
    address: "https://host.example/mlflow",
    authorization: `Basic ${Buffer.from("name:p@ss").toString("base64")}`,
  });
  expect(server({ MLFLOW_TRACKING_URI: uri, MLFLOW_TRACKING_TOKEN: "t" })).toMatchObject({ authorization: "Bearer t" });
  // A password is no part of an address, and means what it says.
  expect(
    server({ MLFLOW_TRACKING_URI: "http://h", MLFLOW_TRACKING_USERNAME: "a", MLFLOW_TRACKING_PASSWORD: "50%" }),
  ).toMatchObject({ authorization: `Basic ${Buffer.from("a:50%").toString("base64")}` });
});

test("names are made of what MLflow takes", () => {
  expect(mlflowKey("train/block-1.load_E.0")).toBe("train/block-1.load_E.0");
  expect(mlflowKey(`a"b:c\n${"x".repeat(300)}`)).toBe(`a_b_c_${"x".repeat(244)}`);
});
