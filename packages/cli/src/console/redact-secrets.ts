/** Matches names of options and keys whose values must not be shown. `tokenizer` and `tokens` do not match. */
export const secretName: RegExp = /secret|token(?!iz|s\b)|password|passphrase|credential|api[-_]?key/i;

/**
 * Matches a URL scheme and the slashes after its colon. One slash is enough, because a path function may have removed
 * the second slash. The lookbehind makes the search linear, because each run of scheme characters is tried only once.
 */
const schemeEnd = /(?<![a-z0-9+.-])([a-z0-9+.-]+):\/{1,2}/gi;
/** Matches the first character of a scheme: a letter that does not follow a letter, digit or underscore. */
const schemeBegin = /(?:^|[+.-])[a-z]/i;
const restOfAddress = /[^\s"'`<>\\]+/y;
const closing: ReadonlySet<string> = new Set(";,.:)]}");

/**
 * Redacts the values in a URL's query or fragment `name=value&…`; redacts the whole text if it has no names. Trailing
 * punctuation is kept.
 */
const withoutValues = (part: string): string =>
  part.replace(/[^&#=?]+=?[^&#?]*/g, (pair) => {
    let end = pair.length;
    while (end > 0 && closing.has(pair[end - 1]!)) end--;
    return `${pair.slice(0, pair.indexOf("=") + 1)}…${pair.slice(end)}`;
  });

const withoutSecrets = (rest: string): string => {
  const [, user = "", host = "", values = ""] = /^([^/?#]*@)?([^?#]*)(.*)$/s.exec(rest)!;
  return `${user && "…@"}${host}${withoutValues(values)}`;
};

/**
 * Redacts secrets in the URLs of a text: values in queries and fragments, as in signed URLs, and user names and
 * passwords before hosts. For texts that are displayed or sent to other programs. A job keeps complete URLs, because a
 * resumed run must read them.
 *
 * Cost: O(length).
 * @example redactSecrets("https://me:pw@host/a.tar?X-Amz-Signature=1f2e&part=3"); //
 * https://…@host/a.tar?X-Amz-Signature=…&part=…
 */
export const redactSecrets = (text: string): string => {
  let [redacted, done] = ["", 0];
  schemeEnd.lastIndex = 0;
  for (let match = schemeEnd.exec(text); match !== null; match = schemeEnd.exec(text)) {
    const before = text[match.index - 1] === "_" ? "_" : "";
    if (!schemeBegin.test(before + match[1]!)) continue;
    restOfAddress.lastIndex = schemeEnd.lastIndex;
    const rest = restOfAddress.exec(text)?.[0] ?? "";
    redacted += text.slice(done, schemeEnd.lastIndex) + withoutSecrets(rest);
    done = schemeEnd.lastIndex += rest.length;
  }
  return redacted + text.slice(done);
};
