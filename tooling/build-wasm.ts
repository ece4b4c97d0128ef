// Builds the WebAssembly of all packages if it is missing or older than its source. This is the first step of
// `pnpm start`. turbo decides what to build. The output of turbo is shown only on failure.
import { spawn } from "node:child_process";
import { repository } from "./repository.ts";

/** Time in milliseconds after which progress is shown. If the build is up to date, turbo ends earlier. */
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
let output = "";
for (const stream of [child.stdout, child.stderr])
  stream.setEncoding("utf8").on("data", (text: string) => (output += text));

let isProgressShown = false;
let timer = setTimeout(() => {
  isProgressShown = true;
  stderr.write("building WebAssembly: kernels for the CPU, in three variants; needed once, takes a minute or two\n");
  const showProgress = (): void =>
    void stderr.write(stderr.isTTY ? `\r  building for ${elapsed()}` : `  building for ${elapsed()}\n`);
  timer = setInterval(showProgress, stderr.isTTY ? 1000 : lineMilliseconds);
}, quietMilliseconds);

const end = (code: number): void => {
  clearTimeout(timer);
  if (isProgressShown)
    stderr.write(`${stderr.isTTY ? "\r" : ""}  ${code === 0 ? "built" : "failed"} after ${elapsed()}   \n`);
  if (code !== 0) stderr.write(output);
  process.exitCode = code;
};
child.once("error", ({ message }) => {
  output = `turbo cannot be started (${message}); install the workspace's tools with: npx --yes pnpm@12.21.0 install\n`;
  end(1);
});
child.once("close", (code, signal) => end(signal === null ? (code ?? 1) : 1));
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => child.kill(signal));
