/** A comment of a TypeScript file. */
export interface Comment {
  readonly line: number;
  /** Whether the comment is a doc comment, `/** … *\/`. */
  readonly isDoc: boolean;
  /**
   * Text of the comment on a single line. Code in backticks, links and quotes is replaced by CODE; examples are
   * removed.
   */
  readonly text: string;
}

/** Matches strings, template literals, doc comments, other block comments, and runs of line comments. */
const tokens =
  /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[^]|[^`\\])*`|\/\*[^]*?\*\/|\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*/g;

const plain = (comment: string): string =>
  comment
    .replace(/^\/\*\*?|\*\/$/g, "")
    .replaceAll(/^[ \t]*(?:\/\/+|\*)/gm, "")
    .replaceAll(/@example[^]*?(?=\n\s*@|$)/g, "")
    .replaceAll(/```[^]*?```|`[^`]*`|\{@link[^}]*\}|https?:\S+|"[^"\n]*"/g, "CODE")
    .replaceAll(/\s+/g, " ")
    .trim();

/** Returns the comments of a TypeScript file, in order. */
export const commentsOf = (text: string): Comment[] =>
  [...text.matchAll(tokens)].flatMap(({ 0: token, index }) =>
    token.startsWith("/*") || token.startsWith("//")
      ? [{ line: text.slice(0, index).split("\n").length, isDoc: token.startsWith("/**"), text: plain(token) }]
      : [],
  );

/** Words and phrases that are not used in comments, help and messages, each with usual words for the same meaning. */
const unusual: readonly (readonly [phrase: RegExp, usual: string])[] = [
  [/\b(?:is|are|was|were|be|been|being) told\b|\btold (?:of|from|by|that|to)\b/, "reported, described, given"],
  [/\b(?:comes?|came|coming) by\b/, "arrive, are received, are chosen"],
  [/\banew\b/, "again"],
  [/\bwho(?:so)?ever\b/, "each caller, each rank"],
  [/\bso many\b/, "the number of …"],
  [/\bbut for\b/, "except"],
  [/\b(?:goes|go|went|going) on\b/, "continues, runs"],
  [/\b(?:is|was) sought\b|\bsought by\b/, "searched"],
  [/\bwhat is left\b/, "the rest"],
  [/\bnone of ours\b/, "not ours"],
  [/\b(?:is|are) had\b/, "are available"],
  [/\bhand(?:s|ed)? round\b/, "passes"],
  [/\b(?:lies|lie|lay) (?:in|at|on|there|between|behind|before|along)\b/, "is stored, is"],
  [/\b(?:stands|stand|stood) (?:in|at|on|there|above|below|beside|before|behind|alone)\b/, "is"],
  [/\b(?:is|are) alike\b|\bboth alike\b/, "equal"],
  [/\bbeside\b/, "next to, in addition to, compared with"],
  [/\bthereby\b|\bwherewith\b|\bwhereof\b|\bhereof\b/, "so"],
  [/\bit is for (?:a|the) \w+ to\b/, "the … does"],
  [/\b(?:is|are) nowhere\b/, "does not contribute"],
];

/** Matches the beginning of a doc comment that does not name a value. */
const emptyBeginning =
  /^(?:What|Of|Where|Which|Whose|The same|So|(?:Most|Least)(?![ -](?:recently|squares|median))|Told|Those|None)\b/;

/**
 * Returns the problems of a comment: each unusual phrase and, for a doc comment, a beginning that does not name a
 * value.
 */
export const unusualWords = ({ text, isDoc }: Pick<Comment, "text" | "isDoc">): string[] => [
  ...unusual.flatMap(([phrase, usual]) => {
    const found = new RegExp(phrase, "i").exec(text)?.[0];
    return found === undefined ? [] : [`"${found}": write ${usual}`];
  }),
  ...(isDoc && emptyBeginning.test(text)
    ? [`begins with "${text.split(" ")[0]}": name the thing first, with the field's noun`]
    : []),
];
