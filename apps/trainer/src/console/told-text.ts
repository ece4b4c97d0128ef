/** Names of options and keys whose values nobody else should see; `tokenizer` and `tokens` are none. */
export const secretName: RegExp = /secret|token(?!iz|s\b)|password|passphrase|credential|api[-_]?key/i;

/**
 * Characters of a scheme, all that stand together, and the slashes after them; the address may also have been taken
 * for a path and have lost a slash. The lookbehind keeps the search linear: each row of characters is tried once.
 */
const schemeEnd = /(?<![a-z0-9+.-])([a-z0-9+.-]+):\/{1,2}/gi;
/** A scheme begins with a letter that follows no letter, digit or underscore. */
const schemeBegin = /(?:^|[+.-])[a-z]/i;
const restOfAddress = /[^\s"'`<>\\]+/y;
const closing: ReadonlySet<string> = new Set(";,.:)]}");

/** Values of `name=value&…`, and a whole that has no names; what ends a sentence stays. */
const withoutValues = (part: string): string =>
  part.replace(/[^&#=?]+=?[^&#?]*/g, (pair) => {
    let end = pair.length;
    while (end > 0 && closing.has(pair[end - 1]!)) end--;
    return `${pair.slice(0, pair.indexOf("=") + 1)}…${pair.slice(end)}`;
  });

const withoutSecrets = (rest: string): string => {
  const [, user = "", place = "", values = ""] = /^([^/?#]*@)?([^?#]*)(.*)$/s.exec(rest)!;
  return `${user && "…@"}${place}${withoutValues(values)}`;
};

/**
 * A text without what addresses in it hold of secrets: values of their queries and fragments, as of signed ones, and
 * names and passwords before their hosts. It is for all that is shown or sent elsewhere; a job keeps its addresses
 * whole, since a run that goes on has to read them.
 *
 * Cost: O(length).
 * @example
 * toldText("https://me:pw@host/a.tar?X-Amz-Signature=1f2e&part=3"); // https://…@host/a.tar?X-Amz-Signature=…&part=…
 */
export const toldText = (text: string): string => {
  let [told, done] = ["", 0];
  schemeEnd.lastIndex = 0;
  for (let match = schemeEnd.exec(text); match !== null; match = schemeEnd.exec(text)) {
    const before = text[match.index - 1] === "_" ? "_" : "";
    if (!schemeBegin.test(before + match[1]!)) continue;
    restOfAddress.lastIndex = schemeEnd.lastIndex;
    const rest = restOfAddress.exec(text)?.[0] ?? "";
    told += text.slice(done, schemeEnd.lastIndex) + withoutSecrets(rest);
    done = schemeEnd.lastIndex += rest.length;
  }
  return told + text.slice(done);
};
