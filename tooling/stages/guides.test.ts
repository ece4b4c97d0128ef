import { expect, test } from "vitest";
import { missingLine, walkGuide } from "./guides.ts";

const fence = (head: string, text: string): string => `\`\`\`${head}\n${text}\n\`\`\`\n`;

test("runs the blocks of a guide in order in one folder: files, commands and their output", async () => {
  const guide = [
    "This is `said/word.ts`:\n",
    fence("ts said/word.ts", 'export const word: string = "skein";'),
    "between them is prose\n",
    fence(
      "sh",
      "ls said\nnode --eval 'import(\"./said/word.ts\").then(({ word }) => console.log(word, Math.random()))'",
    ),
    fence("text", "word.ts\nskein 0.…"),
    fence("sh", "npm install @skein/data fast-check@^4.10.2 && pwd > where"),
    fence("sh full", "echo only now and then"),
    fence("text", "only now and then"),
    fence("ts", 'import { existsSync } from "node:fs";\nif (!existsSync("where")) throw new Error("another folder");'),
  ].join("\n");
  expect((await walkGuide("guide", guide, false)).map(({ name, status }) => `${name} ${status}`)).toEqual([
    "guide:9 passed",
    "guide:19 passed",
    "guide:23 skipped",
    "guide:31 passed",
  ]);
  expect((await walkGuide("guide", guide, true)).map(({ status }) => status)).toEqual(Array(4).fill("passed"));
});

test("starts each block in the folder where the previous block ended, also in a created project", async () => {
  const guide = [
    fence("sh", "npm create skein@latest a-run -- --template own\ncd a-run\nnpm install"),
    fence("text", "  cd a-run && npm install\n  npm start"),
    "`more.js`:\n",
    fence("js more.js", 'console.log(require.resolve("skein-train/package.json"));'),
    fence("sh", "ls job.yaml more.js\ntest -e node_modules/skein-train && basename $PWD && cd .. && ls"),
    fence("text", "job.yaml\nmore.js\na-run\na-run"),
    fence("ts", 'import { existsSync } from "node:fs";\nif (!existsSync("a-run")) throw new Error("elsewhere");'),
  ].join("\n");
  expect((await walkGuide("guide", guide, false)).map(({ status }) => status)).toEqual(Array(3).fill("passed"));
});

test.each([
  ["a command that fails", fence("sh", "false\necho never"), "exit code 1"],
  ["a command in a pipe that fails", fence("sh", "false | cat"), "exit code 1"],
  ["a package that examples/ lacks", fence("sh", "npm install left-pad"), "has no left-pad"],
  ["a program that is no package's", fence("sh", "npx left-pad"), "has no left-pad"],
  [
    "another output",
    fence("sh", "echo one; echo two") + fence("text", "two\none"),
    "lacks (in this order) the line\none",
  ],
  ["a file that is not named", fence("js a.js", "let a;"), "write `a.js` in the text above"],
  ["an output of nothing", fence("text", "hello"), "no command precedes this output"],
  ["a block that cannot be run", fence("py", "print(1)"), "py blocks are not run"],
])("stops at %s, with the reason", async (_, blocks, detail) => {
  const checks = await walkGuide("guide", `${blocks}\n${fence("sh", "echo after it")}`, false);
  expect(checks.at(-1)).toMatchObject({ status: "failed", detail: expect.stringContaining(detail) });
  expect(checks.filter(({ status }) => status === "passed").length).toBeLessThan(2);
});

test("matches expected lines literally, with … as a wildcard", () => {
  expect(missingLine("a (b) [1.5]\n…\nloss …, 9 % right", "a (b) [1.5]\nother\n  loss 0.1, 9 % right")).toBeUndefined();
  expect(missingLine("a.c", "abc")).toBe("a.c");
  expect(missingLine("right", "not right")).toBe("right");
  expect(missingLine("1 … 3", "1 2 4")).toBe("1 … 3");
});
