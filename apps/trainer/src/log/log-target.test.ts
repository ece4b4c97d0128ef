import { expect, test } from "vitest";
import { logTargetOf } from "./log-target.ts";

const server = (env: Readonly<Record<string, string>>): object | undefined => logTargetOf("mlflow", env)?.server;

test("errors of the options in one line, with the remedy", () => {
  expect(logTargetOf(undefined, {})).toBeUndefined();
  expect(logTargetOf("tensorboard", {})).toBeUndefined();
  expect(() => logTargetOf("wandb", {})).toThrow(/wandb sync <folder of the run>$/);
  expect(() => logTargetOf("neptune", {})).toThrow(/^--log neptune: must be tensorboard or mlflow$/);
  expect(() => logTargetOf("mlflow", {})).toThrow(/MLFLOW_TRACKING_URI is not set/);
  for (const uri of ["./mlruns", "sqlite:///mlflow.db", "databricks", "file:///tmp"])
    expect(() => server({ MLFLOW_TRACKING_URI: uri })).toThrow(/must be an http or https address/);
});

test("server and identity, read as MLflow's own client reads them", () => {
  const uri = "https://name:p%40ss@host.example/mlflow/";
  expect(server({ MLFLOW_TRACKING_URI: "http://127.0.0.1:5000" })).toEqual({
    address: "http://127.0.0.1:5000",
    authorization: undefined,
  });
  expect(server({ MLFLOW_TRACKING_URI: uri })).toEqual({
    address: "https://host.example/mlflow",
    authorization: `Basic ${Buffer.from("name:p@ss").toString("base64")}`,
  });
  // A user name with a password takes precedence over a token. Empty variables are ignored.
  const basic = `Basic ${Buffer.from("name:p@ss").toString("base64")}`;
  expect(server({ MLFLOW_TRACKING_URI: uri, MLFLOW_TRACKING_TOKEN: "t" })).toMatchObject({ authorization: basic });
  for (const more of [{}, { MLFLOW_TRACKING_USERNAME: "only" }, { MLFLOW_TRACKING_PASSWORD: "only" }])
    expect(server({ MLFLOW_TRACKING_URI: "http://h", MLFLOW_TRACKING_TOKEN: "t", ...more })).toMatchObject({
      authorization: "Bearer t",
    });
  expect(
    server({ MLFLOW_TRACKING_URI: uri, MLFLOW_TRACKING_USERNAME: "", MLFLOW_TRACKING_PASSWORD: "" }),
  ).toMatchObject({ authorization: basic });
  // A password in the URL is decoded, and removed from the URL.
  expect(
    server({ MLFLOW_TRACKING_URI: "http://h", MLFLOW_TRACKING_USERNAME: "a", MLFLOW_TRACKING_PASSWORD: "50%" }),
  ).toMatchObject({ authorization: `Basic ${Buffer.from("a:50%").toString("base64")}` });
});

test("unreadable certificates are reported before anything is sent", () => {
  const https = { MLFLOW_TRACKING_URI: "https://h" };
  for (const [path, says] of [
    ["/nowhere/ca.pem", /which cannot be read \(ENOENT\); it must be a PEM file of certificates$/],
    [import.meta.dirname, /which cannot be read \(it is no regular file\)/],
    ["/dev/zero", /which cannot be read \(it is no regular file\)/],
    [import.meta.filename, /which holds no certificate/],
  ] as const)
    expect(() => server({ ...https, MLFLOW_TRACKING_SERVER_CERT_PATH: path })).toThrow(says);
  expect(server({ ...https, MLFLOW_TRACKING_SERVER_CERT_PATH: "" })).toMatchObject({ authority: undefined });
});
