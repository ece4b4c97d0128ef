/** Names of options and keys whose values nobody else should see; `tokenizer` and `tokens` are none. */
export const secretName: RegExp = /secret|token(?!iz|s\b)|password|passphrase|credential|api[-_]?key/i;

/** An address, also one that was taken for a path and lost a slash. */
const address = /\b([a-z][a-z0-9+.-]*:\/{1,2})([^\s"'`<>\\]+)/gi;

/** Values of `name=value&…`, and a whole that has no names; what ends a sentence stays. */
const withoutValues = (part: string): string =>
  part.replace(/[^&#=?]+=?[^&#?]*/g, (pair) => {
    const end = /[;,.:)\]}]*$/.exec(pair)![0];
    const name = /^[^=]*=/.exec(pair)?.[0] ?? "";
    return `${name}…${end}`;
  });

/**
 * A text without what addresses in it hold of secrets: values of their queries and fragments, as of signed ones, and
 * names and passwords before their hosts. It is for all that is shown or sent elsewhere; a job keeps its addresses
 * whole, since a run that goes on has to read them.
 *
 * Cost: O(length).
 * @example
 * toldText("https://me:pw@host/a.tar?X-Amz-Signature=1f2e&part=3"); // https://…@host/a.tar?X-Amz-Signature=…&part=…
 */
export const toldText = (text: string): string =>
  text.replaceAll(address, (_, scheme: string, rest: string) => {
    const [, user = "", place = "", values = ""] = /^([^/?#]*@)?([^?#]*)(.*)$/s.exec(rest)!;
    return `${scheme}${user && "…@"}${place}${withoutValues(values)}`;
  });
