import { secretName, toldText } from "../console/told-text.ts";

const option = /^(-*[\w.-]+)(=|$)/;

/** The option or key that a word is or begins with, where it is named like a secret. */
const secretIn = (word: string | undefined): { readonly name: string; readonly hasValue: boolean } | undefined => {
  const [, name, sign] = option.exec(word ?? "") ?? [];
  return name !== undefined && secretName.test(name) ? { name, hasValue: sign === "=" } : undefined;
};

/**
 * The words of a command, without what follows an option or key that is named like a secret, and without what addresses
 * in it hold of secrets.
 */
export const toldCommand = (words: readonly string[]): string[] =>
  words.map((word, index) => {
    const before = secretIn(words[index - 1]);
    if (before !== undefined && !before.hasValue && before.name.startsWith("-")) return "…";
    const own = secretIn(word);
    return own?.hasValue === true ? `${own.name}=…` : toldText(word);
  });
