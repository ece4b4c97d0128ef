/**
 * Start a command of ours: the source where that is, in a clone of the repository, and what was built of it in an
 * installed package. Where Node is too old, or a clone's WebAssembly is not built, say so in a line and set exit
 * code 2.
 *
 * @param name of the command.
 * @param from the address of its bin, `import.meta.url`.
 */
export declare const launch: (name: string, from: string) => Promise<void>;
