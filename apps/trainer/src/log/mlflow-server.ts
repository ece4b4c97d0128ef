import { readTextFile } from "@skein/collectives/files";
import { ConfigError } from "../errors.ts";

/** A server of MLflow, and what it knows a user by. */
export interface MlflowServer {
  /** Without a slash at its end. */
  readonly address: string;
  /** The header `Authorization`. */
  readonly authorization?: string | undefined;
  /** Certificates, as PEM text, of those who may have signed that of the server. Default: those that Node knows. */
  readonly authority?: string | undefined;
}

/**
 * The server that the environment names, as MLflow's own client reads it: `MLFLOW_TRACKING_URI`;
 * `MLFLOW_TRACKING_USERNAME` with `MLFLOW_TRACKING_PASSWORD`, else `MLFLOW_TRACKING_TOKEN`; and
 * `MLFLOW_TRACKING_SERVER_CERT_PATH`. Nothing of it is kept.
 *
 * @throws ConfigError where no server is named, or none that speaks HTTP, and for certificates that cannot be read.
 */
export const mlflowServerOf = (env: Readonly<Record<string, string | undefined>>): MlflowServer => {
  const uri = env["MLFLOW_TRACKING_URI"];
  if (uri === undefined || uri === "")
    throw new ConfigError([
      "--log mlflow: MLFLOW_TRACKING_URI names no server; set it to the address of yours, such as http://127.0.0.1:5000",
    ]);
  const url = URL.parse(uri);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new ConfigError([
      `--log mlflow: MLFLOW_TRACKING_URI is ${JSON.stringify(uri)}, but must be an address of http or https; for a folder or a database, start mlflow server on it`,
    ]);
  return {
    address: `${url.origin}${url.pathname.replace(/\/+$/, "")}`,
    authorization: authorizationOf(env, url),
    authority: authorityOf(env["MLFLOW_TRACKING_SERVER_CERT_PATH"]),
  };
};

/** A name and its password come before a token. */
const authorizationOf = (env: Readonly<Record<string, string | undefined>>, url: URL): string | undefined => {
  const user = env["MLFLOW_TRACKING_USERNAME"] || decoded(url.username);
  const password = env["MLFLOW_TRACKING_PASSWORD"] || decoded(url.password);
  const token = env["MLFLOW_TRACKING_TOKEN"] || undefined;
  if (user !== "" && (password !== "" || token === undefined))
    return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  return token && `Bearer ${token}`;
};

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

/** Maximum size of a file of certificates, in bytes; those of all authorities have a quarter of that. */
const maxCertificateBytes = 2 ** 20;

const authorityOf = (path: string | undefined): string | undefined => {
  if (path === undefined || path === "") return undefined;
  let text = "";
  let fault = "holds no certificate";
  try {
    text = readTextFile(path, maxCertificateBytes).text;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    fault = `cannot be read (${code ?? message})`;
  }
  if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  throw new ConfigError([
    `--log mlflow: MLFLOW_TRACKING_SERVER_CERT_PATH is ${path}, which ${fault}; it must be a PEM file of certificates`,
  ]);
};
