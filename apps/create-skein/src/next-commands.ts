const quote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** How the package managers install, and run a script. */
const managers = {
  npm: { install: "npm install", start: "npm start" },
  pnpm: { install: "pnpm install", start: "pnpm start" },
  yarn: { install: "yarn install", start: "yarn start" },
  bun: { install: "bun install", start: "bun run start" },
} as const;

/**
 * The two commands that follow, by the package manager that has started this program.
 *
 * @param userAgent `npm_config_user_agent` of the environment.
 */
export const nextCommands = (folder: string, userAgent: string | undefined): readonly [string, string] => {
  const [, manager = "npm"] = /^(npm|pnpm|yarn|bun)\//.exec(userAgent ?? "") ?? [];
  const { install, start } = managers[manager as keyof typeof managers];
  return [folder === "." ? install : `cd ${quote(folder)} && ${install}`, start];
};
