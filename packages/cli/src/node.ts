export { commandAction } from "./commander/command-action.ts";
export type { GlobalOptions } from "./commander/global-options.ts";
export { asTyped, asTypedIn, reportLine, resumeLine, shortPath } from "./console/own-command.ts";
export { redactSecrets, secretName } from "./console/redact-secrets.ts";
export { shellCommand, shellQuote } from "./console/shell-quote.ts";
export { writeStderr, writeStdout } from "./console/terminal.ts";
export {
  CallbackError,
  CheckpointError,
  ConfigError,
  DamagedCheckpointError,
  describeError,
  DiskFullError,
  type ErrorReport,
  exitCodeOf,
  exitCodes,
  explainDiskFull,
  explainFullExport,
  formatError,
  isShortage,
  ModuleError,
  NonFiniteError,
  OutcomeError,
  reviveError,
  RevokedError,
  RunError,
  stopCodes,
  TraceError,
} from "./errors.ts";
export { parseBoundedJson, readBoundedJson } from "./files/bounded-json.ts";
export { copyLines } from "./files/copy-lines.ts";
export { eachLine } from "./files/each-line.ts";
export { type FileStamp, isUnchanged, stampAt, stampOf } from "./files/file-stamp.ts";
export { type FileWrites, nodeFileWrites } from "./files/file-writes.ts";
export { type Files, nodeFiles, replaceDurably } from "./files/files.ts";
export { readJsonFile, requireBounded } from "./files/json-file.ts";
export { LineSplitter } from "./files/line-splitter.ts";
export { makeFolders, removeEmpty } from "./files/make-folders.ts";
export { explainPath, requireFolder, requireNewFile, requireReplaceable, requireWritable } from "./files/places.ts";
export { recordSchema } from "./files/record-schema.ts";
export { sha256 } from "./files/sha256.ts";
export { exitCodeOfSignal, onInterrupt, type StopCause } from "./processes/interrupts.ts";
export { launcherVariables } from "./processes/launcher-watch.ts";
export { keepExitCode, surviveLostOutput } from "./processes/lost-output.ts";
export { pidNamespace } from "./processes/pid-namespace.ts";
export { RestartBudget } from "./processes/restart-budget.ts";
