/**
 * Starts the command `name`: from its sources in a clone of the repository, or from its build in an installed package.
 * If Node is too old, or the WebAssembly of a clone is not built, prints a line that says so, and sets exit code 2.
 *
 * @param name name of the command.
 * @param from URL of the command's bin file, `import.meta.url`.
 */
export declare const launch: (name: string, from: string) => Promise<void>;
