/** A fenced block of a Markdown text. */
export interface CodeBlock {
  /** Language of the block, such as `ts` or `sh`. */
  readonly language: string;
  /** Words after the language on the first line of the fence. */
  readonly words: readonly string[];
  readonly text: string;
  /** Line number of the opening fence, starting at 1. */
  readonly line: number;
}

const fenced = /^```(\S*)([^\n]*)\n(.*?)^```$/gms;

/** Returns the fenced blocks of a Markdown text, in order. */
export const codeBlocks = (markdown: string): CodeBlock[] =>
  [...markdown.matchAll(fenced)].map(({ 1: language, 2: words, 3: text, index }) => ({
    language: language!,
    words: words!.split(" ").filter((word) => word !== ""),
    text: text!,
    line: markdown.slice(0, index).split("\n").length,
  }));

/** Replaces text outside of fenced blocks and backticks by the result of `change`. */
export const outsideCode = (markdown: string, change: (prose: string) => string): string => {
  const code = /^```.*?^```$|`+[^`]*`+/gms;
  let result = "";
  let end = 0;
  for (const { 0: text, index } of markdown.matchAll(code)) {
    result += change(markdown.slice(end, index)) + text;
    end = index + text.length;
  }
  return result + change(markdown.slice(end));
};
