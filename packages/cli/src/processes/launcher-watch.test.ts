import { spawn } from "node:child_process";
import { once } from "node:events";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { whenLauncherIsGone } from "./launcher-watch.ts";

test("notices a killed launcher; does not watch one of another machine, or without a launcher", async () => {
  const launcher = spawn("sleep", ["60"]);
  await once(launcher, "spawn");
  const others = [`${launcher.pid}@another-${hostname()}`, "", undefined].map((value) =>
    whenLauncherIsGone(() => expect.fail("no launcher of this machine"), { SKEIN_LAUNCHER: value }),
  );
  const gone = new Promise<void>((resolve) => {
    whenLauncherIsGone(resolve, { SKEIN_LAUNCHER: `${launcher.pid}@${hostname()}` });
  });
  const keepsAlive = setInterval(() => undefined, 1000);
  launcher.kill("SIGKILL");
  await gone;
  clearInterval(keepsAlive);
  for (const end of others) end();
});
