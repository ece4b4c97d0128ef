// Builds the WebAssembly of all packages where it is missing or older than its source; `pnpm start` begins with this.
// turbo knows what is to be done; what it says is shown only where it fails.
import { spawn } from "node:child_process";
import { repository } from "./repository.ts";

/** A build that is there already is found in less. */
const quietMilliseconds = 3000;
const lineMilliseconds = 15_000;

const { stderr } = process;
const began = performance.now();
const elapsed = (): string => `${Math.round((performance.now() - began) / 1000)} s`;

const child = spawn("turbo", ["run", "build:wasm", "--output-logs=errors-only", "--log-prefix=none"], {
  cwd: repository,
  stdio: ["ignore", "pipe", "pipe"],
  env: { ...process.env, TURBO_TELEMETRY_DISABLED: "1", TURBO_NO_UPDATE_NOTIFIER: "1" },
});
let said = "";
for (const stream of [child.stdout, child.stderr])
  stream.setEncoding("utf8").on("data", (text: string) => (said += text));

let told = false;
let timer = setTimeout(() => {
  told = true;
  stderr.write("building WebAssembly: kernels for the CPU, in three variants; needed once, takes a minute or two\n");
  const tell = (): void =>
    void stderr.write(stderr.isTTY ? `\r  building for ${elapsed()}` : `  building for ${elapsed()}\n`);
  timer = setInterval(tell, stderr.isTTY ? 1000 : lineMilliseconds);
}, quietMilliseconds);

const end = (code: number): void => {
  clearTimeout(timer);
  if (told) stderr.write(`${stderr.isTTY ? "\r" : ""}  ${code === 0 ? "built" : "failed"} after ${elapsed()}   \n`);
  if (code !== 0) stderr.write(said);
  process.exitCode = code;
};
child.once("error", ({ message }) => {
  said = `turbo cannot be started (${message}); install the workspace's tools with: npx --yes pnpm@12.21.0 install\n`;
  end(1);
});
child.once("close", (code, signal) => end(signal === null ? (code ?? 1) : 1));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => child.kill(signal));
