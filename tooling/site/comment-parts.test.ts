import { Comment, CommentTag } from "typedoc";
import { expect, test } from "vitest";
import { takeCostAndSource } from "./comment-parts.ts";

test("separates cost and source from the preceding tag or example", () => {
  const comment = new Comment(
    [{ kind: "text", text: "Keep k entries." }],
    [
      new CommentTag("@throws", [
        { kind: "text", text: "ArgumentError for " },
        { kind: "code", text: "`k`" },
        { kind: "text", text: " below 1.\nCost: 8k bytes, by " },
        { kind: "code", text: "`allGather`" },
        { kind: "text", text: ".\nSource: arXiv 1" },
      ]),
      new CommentTag("@example", [{ kind: "code", text: "```ts\ntopK({ k: 1 })\nSource: arXiv 2\n```" }]),
    ],
  );
  takeCostAndSource(comment);
  expect(comment.blockTags.map(({ tag, content }) => [tag, content.map(({ text }) => text).join("")])).toEqual([
    ["@throws", "ArgumentError for `k` below 1."],
    ["@cost", "8k bytes, by `allGather`."],
    ["@source", "arXiv 1"],
    ["@example", "```ts\ntopK({ k: 1 })\n```"],
    ["@source", "arXiv 2"],
  ]);
});
