import { expect, test } from "vitest";
import { managerOf, nextCommands } from "./package-managers.ts";

test("uses the commands of the package manager that started the program", () => {
  expect(nextCommands("my-run", managerOf("npm/11.0.0 node/v24.0.0 linux x64"))).toEqual([
    "cd my-run && npm install",
    "npm start",
  ]);
  expect(nextCommands("my-run", managerOf("pnpm/12.21.0 npm/? node/v24.0.0"))[1]).toBe("pnpm start");
  expect(nextCommands("my-run", managerOf("yarn/1.22.22 npm/?"))[0]).toBe("cd my-run && yarn install");
  expect(nextCommands("my-run", managerOf("bun/1.3.0"))[1]).toBe("bun run start");
  for (const other of [undefined, "", "deno/2.0.0", "npmx/1"]) expect(managerOf(other)).toBe("npm");
});

test("quotes a folder with shell characters, and omits cd for the working folder", () => {
  expect(nextCommands(".", "npm")[0]).toBe("npm install");
  expect(nextCommands("/tmp/my runs/a", "npm")[0]).toBe("cd '/tmp/my runs/a' && npm install");
  expect(nextCommands("~a", "npm")[0]).toBe("cd '~a' && npm install");
  expect(nextCommands("it's/$a", "npm")[0]).toBe(String.raw`cd 'it'\''s/$a' && npm install`);
});
