import { ConfigError } from "@skein/cli/node";
import { readTextFile } from "@skein/collectives/files";

/** An MLflow server, and the credentials of a user. */
export interface MlflowServer {
  /** URL of the server without a trailing slash. */
  readonly address: string;
  /** Value of the header `Authorization`. Absent: no credentials. */
  readonly authorization?: string | undefined;
  /**
   * Certificates of authorities that may sign the server's certificate, as PEM text. Default: authorities that Node
   * trusts.
   */
  readonly authority?: string | undefined;
}

/**
 * Reads the server from the environment, like MLflow's own client: `MLFLOW_TRACKING_URI`; `MLFLOW_TRACKING_USERNAME`
 * with `MLFLOW_TRACKING_PASSWORD`, or `MLFLOW_TRACKING_TOKEN`; and `MLFLOW_TRACKING_SERVER_CERT_PATH`. The credentials
 * are not stored.
 *
 * @throws ConfigError if no HTTP server is named, or certificates cannot be read.
 */
export const mlflowServerOf = (env: Readonly<Record<string, string | undefined>>): MlflowServer => {
  const uri = env["MLFLOW_TRACKING_URI"];
  if (uri === undefined || uri === "")
    throw new ConfigError([
      "--log mlflow: MLFLOW_TRACKING_URI is not set; set it to the address of your server, such as http://127.0.0.1:5000",
    ]);
  const url = URL.parse(uri);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new ConfigError([
      `--log mlflow: MLFLOW_TRACKING_URI is ${JSON.stringify(uri)}, but must be an http or https address; for a folder or a database, start mlflow server on it`,
    ]);
  return {
    address: `${url.origin}${url.pathname.replace(/\/+$/, "")}`,
    authorization: authorizationOf(env, url),
    authority: authorityOf(env["MLFLOW_TRACKING_SERVER_CERT_PATH"]),
  };
};

/** Returns the authorization header. A user name with a password takes precedence over a token. */
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

/**
 * Maximum size of a certificate file in bytes, four times the size of a file with the certificates of all public
 * authorities.
 */
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
