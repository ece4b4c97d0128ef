const secretOption = /^(-*[\w.-]*(?:secret|token|password|passphrase|credential)[\w.-]*)(=|$)/i;

/** The words of a command, without what follows an option or key that is named like a secret. */
export const toldCommand = (words: readonly string[]): string[] =>
  words.map((word, index) => {
    const before = index > 0 ? secretOption.exec(words[index - 1]!) : null;
    if (before !== null && before[2] === "" && before[1]!.startsWith("-")) return "…";
    const own = secretOption.exec(word);
    return own !== null && own[2] === "=" ? `${own[1]}=…` : word;
  });
