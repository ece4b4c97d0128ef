import { redactSecrets, secretName } from "@skein/cli/node";
const option = /^(-*[\w.-]+)(=|$)/;

/** Returns the option or key at the start of a word, if its name suggests a secret. */
const secretIn = (word: string | undefined): { readonly name: string; readonly hasValue: boolean } | undefined => {
  const [, name, sign] = option.exec(word ?? "") ?? [];
  return name !== undefined && secretName.test(name) ? { name, hasValue: sign === "=" } : undefined;
};

/** Redacts a command: removes the values of options and keys whose names suggest a secret, and secrets in URLs. */
export const redactCommand = (words: readonly string[]): string[] =>
  words.map((word, index) => {
    const before = secretIn(words[index - 1]);
    if (before !== undefined && !before.hasValue && before.name.startsWith("-")) return "…";
    const own = secretIn(word);
    return own?.hasValue === true ? `${own.name}=…` : redactSecrets(word);
  });
