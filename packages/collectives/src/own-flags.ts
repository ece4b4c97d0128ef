/** Options for a worker of ours. A program that came through standard input or --eval says what language it is in, which Node refuses to be told for a file. */
export const ownFlags = (): { execArgv?: string[] } =>
  process.execArgv.some((flag) => flag.startsWith("--input-type")) ? { execArgv: [] } : {};
