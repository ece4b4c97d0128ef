const quote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** Install and start commands per package manager. */
const managers = {
  npm: { install: "npm install", start: "npm start" },
  pnpm: { install: "pnpm install", start: "pnpm start" },
  yarn: { install: "yarn install", start: "yarn start" },
  bun: { install: "bun install", start: "bun run start" },
} as const;

export type Manager = keyof typeof managers;

/**
 * Returns the package manager that started this program. Default: npm.
 * @param userAgent Value of `npm_config_user_agent` in the environment.
 */
export const managerOf = (userAgent: string | undefined): Manager => {
  const [, name = "npm"] = /^(npm|pnpm|yarn|bun)\//.exec(userAgent ?? "") ?? [];
  return name as Manager;
};

/**
 * Returns the commands with which the user installs the new project, and starts it.
 * @param folder Path of the project relative to the working folder.
 */
export const nextCommands = (folder: string, manager: Manager): readonly [install: string, start: string] => {
  const { install, start } = managers[manager];
  return [folder === "." ? install : `cd ${quote(folder)} && ${install}`, start];
};
