import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Comment, commentsOf, unusualWords } from "./plain-words.ts";
import { repository } from "./repository.ts";

const doc = (text: string): Pick<Comment, "text" | "isDoc"> => ({ text, isDoc: true });

// Comments of an earlier version that readers found hard. With these comments, the test ensures that the word list does
// not shrink.
test.each([
  "How buckets come about: said by the job, or come by measurements.",
  "So many operands are arguments; the others are the values.",
  "Most copies of one rank's tokens that go to ranks.",
  "An optimizer, and what of it is sought.",
  "What came before, for attention that is causal.",
  "Configurations whose bytes lie in one file.",
  "The same for one rank, which has everything.",
  "What a run holds itself, and what is none of ours.",
  "A column that a manifest names twice is told.",
  "Placed anew after each epoch.",
  "Which part of the samples a rank judges.",
  "The prediction beside the measurement.",
])("finds unusual words: %s", (text) => {
  expect(unusualWords(doc(text))).not.toEqual([]);
});

test.each([
  "How bucket sizes are chosen: given in the job, planned from measurements, or tuned during the run.",
  "Number of leading operands that are arguments; the remaining operands are values, one per output.",
  "Maximum number of copies of one rank's tokens sent to ranks that hold all experts.",
  "An optimizer and the hyperparameters to search.",
  "Keys and values of earlier positions, for causal attention. Default: none.",
  "Folders that the search for runs skips.",
  "Least-squares fit of a line.",
])("accepts usual words: %s", (text) => {
  expect(unusualWords(doc(text))).toEqual([]);
});

test("reads comments, but no code, strings or examples in them", () => {
  const text = `const a = "// told by"; // first line
// and second, see \`anew\`
const b = \`/* beside */\`;
/**
 * Sum of rows.
 *
 * @example
 * // comes by
 * sum(x);
 */
`;
  expect(commentsOf(text)).toEqual([
    { line: 1, isDoc: false, text: "first line and second, see CODE" },
    { line: 4, isDoc: true, text: "Sum of rows." },
  ]);
});

// Two files are excluded, because their text, including comments, identifies the recorded runs of a study.
test("comments use the usual words of the field", () => {
  const files = globSync("{packages,apps,benchmarks,examples,tooling}/**/*.ts", { cwd: repository }).filter(
    (path) => !/node_modules|\/dist\/|\/generated\/|^benchmarks\/src\/moe\/layer\/(data|model)\.ts$/.test(path),
  );
  expect(files.length).toBeGreaterThan(1000);
  const faults = files.flatMap((path) =>
    commentsOf(readFileSync(join(repository, path), "utf8")).flatMap((comment) =>
      unusualWords(comment).map((fault) => `${path}:${comment.line}: ${fault}`),
    ),
  );
  expect(faults).toEqual([]);
});
